"""run, inspect, bench, --version, options and exit codes."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import unittest

import support
from support import DEMO, GOLDEN, PIANO, ROOT, run

TINY = str(GOLDEN / "tiny.gguf")


class Run(unittest.TestCase):
    def test_answers_in_one_shot(self):
        result = run("run", DEMO, "-p", "What is a piano?", "--temp", "0")
        self.assertEqual((result.returncode, result.stdout), (0, PIANO + "\n"), result.stderr)
        self.assertEqual(result.stderr, "")

    def test_the_demo_model_is_found_from_here_and_from_elsewhere(self):
        self.assertEqual(run("run", "-p", "What is a piano?", "--temp", "0").stdout, PIANO + "\n")

    def test_a_pipe_and_a_file_hold_the_question(self):
        self.assertEqual(run("run", "--temp", "0", stdin="What is 27 + 45?").stdout, "27 + 45 = 72.\n")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "question.txt")
            path.write_text("What is the capital of Japan?")
            result = run("run", "--temp", "0", "--prompt-file", path)
            self.assertEqual(result.stdout, "The capital of Japan is Tokyo.\n", result.stderr)

    def test_every_processor_level_device_and_kind_of_reading_gives_the_same_answer(self):
        for options in (["--cpu-isa", "avx2"], ["--weights", "mapped"], ["--weights", "tiles"],
                        ["--weights", "copied"], ["--threads", "1"], ["--prefill", "1"],
                        ["--prefill", "7"], ["--device", "sim"], ["--max-context", "64"]):
            result = run("run", "-p", "What is a piano?", "--temp", "0", *options)
            self.assertEqual(result.stdout, PIANO + "\n", f"{options}: {result.stderr}")

    def test_raw_text_goes_on_without_a_template(self):
        result = run("run", "--raw", "-p", "The capital of Japan", "--temp", "0", "--max-tokens", "4")
        self.assertEqual(result.stdout, " is Tokyo.\n", result.stderr)

    def test_seeds_repeat(self):
        def story(seed):
            return run("run", "-p", "Tell me a story.", "--seed", seed, "--max-tokens", "40").stdout
        self.assertEqual(story(7), story(7))
        self.assertNotEqual(story(7), story(8))

    def test_thinking(self):
        result = run("run", "-p", "What is a piano?", "--temp", "0", "--think", "on")
        self.assertEqual(result.stdout, PIANO + "\n")
        self.assertIn("The user asks", result.stderr)
        self.assertNotIn("think>", result.stderr)

    def test_speed_and_choices_are_told_when_asked_for(self):
        result = run("run", "-p", "What is a piano?", "--temp", "0", "--verbose")
        self.assertEqual(result.stdout, PIANO + "\n")
        self.assertRegex(result.stderr, r"threads \d+ \(.*kv f16 \(")
        self.assertRegex(result.stderr, r"\[prompt: 21 tokens in .* tokens/s; answer: 37 tokens")
        self.assertNotIn("piano", result.stderr)  # no prompt in a log
        plan = run("run", "-p", "x", "--max-tokens", "1", "--show-plan").stderr
        self.assertRegex(plan, r"trunk recurrent +[\d.]+ MiB")

    def test_a_chat_keeps_its_history(self):
        # A terminal is a pair of devices: the program holds one end, the test the other.
        main, other = os.openpty()
        with subprocess.Popen([support.BINARY, "run", DEMO, "--temp", "0"], stdin=other,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT,
                              env=support.environment()) as chat:
            os.close(other)
            os.write(main, b"What is a piano?\n/reset\nWhat is 27 + 45?\n/exit\n")
            out, _ = chat.communicate(timeout=support.PATIENCE_S)
            self.assertEqual(chat.returncode, 0)
        os.close(main)
        self.assertEqual(out.decode().splitlines(), [PIANO, "27 + 45 = 72."])

    def test_an_interrupt_stops_the_answer(self):
        # An answer of the whole context, with special tokens as text: it would take many seconds.
        with subprocess.Popen([support.BINARY, "run", "--raw", "-p", "a b a b", "--temp", "0",
                               "--repetition-penalty", "0.5"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=ROOT, env=support.environment()) as process:
            first = process.stdout.read(4)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=support.PATIENCE_S)
            self.assertEqual(len(first), 4)
            self.assertEqual(process.returncode, 130)


class Refusals(unittest.TestCase):
    def refused(self, code, *arguments, stdin=""):
        """The one line on stderr."""
        result = run(*arguments, stdin=stdin)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("strata: "), result.stderr)
        return result.stderr

    def test_exit_codes_say_what_went_wrong(self):
        self.assertIn("did you mean run?", self.refused(64, "rnu"))
        self.assertIn("--prompt", self.refused(64, "run", "--promt", "x"))
        self.assertIn("nowhere.gguf", self.refused(66, "run", "nowhere.gguf", "-p", "x"))
        self.assertIn("not a GGUF", self.refused(65, "run", ROOT / "README.md", "-p", "x"))
        self.assertRegex(self.refused(69, "run", "-p", "x", "--device", "cuda:77"),
                         "no such devices|no card can be used|there is no card|this build has no cards")
        # The table comes as lines.
        table = self.refused(71, "run", "-p", "x", "--device", "sim:10MiB")
        self.assertRegex(table, r"\n[^\n]*[\d.]+ MiB")
        self.assertNotIn("\\n", table)
        self.assertIn("empty", self.refused(64, "run"))
        self.assertIn("--reference", self.refused(64, "eval"))
        with tempfile.TemporaryDirectory() as folder:
            cut = pathlib.Path(folder, "cut.gguf")
            cut.write_bytes(pathlib.Path(DEMO).read_bytes()[:1_000_000])
            self.assertIn("cut.gguf", self.refused(65, "run", cut, "-p", "x"))
            # A template is part of its file.
            broken = pathlib.Path(folder, "broken.gguf")
            data = pathlib.Path(DEMO).read_bytes()
            at = data.index(b"{%", data.index(b"tokenizer.chat_template"))
            broken.write_bytes(data[:at] + b"{{" + data[at + 2:])
            text = self.refused(65, "run", broken, "-p", "x")
            self.assertEqual(text.count("chat template"), 1, text)
        self.assertEqual(run().returncode, 64)
        self.assertEqual(run("--help").returncode, 0)

    def test_names_do_not_steer_the_terminal(self):
        text = self.refused(66, "run", "no\x1b[31m\nwhere.gguf", "-p", "x")
        self.assertIn("no\\x1b[31m\\nwhere.gguf", text)
        self.assertEqual(text.count("\n"), 1)
        self.assertIn("\\x1b", self.refused(64, "run", "--\x1b[31m"))

    def test_a_prompt_that_cannot_be_read_is_told_from_an_empty_one(self):
        def refused(code, **stdin):
            result = subprocess.run([support.BINARY, "run", DEMO, "--temp", "0"], capture_output=True,
                                    text=True, timeout=support.PATIENCE_S, **stdin)
            self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
            return result.stderr
        with open("/dev/null") as empty:
            self.assertIn("the prompt is empty", refused(64, stdin=empty))
        folder = os.open(ROOT, os.O_RDONLY)
        self.assertIn("the prompt on stdin: ", refused(74, stdin=folder))
        os.close(folder)
        self.assertIn("the prompt on stdin: ", refused(74, preexec_fn=lambda: os.close(0)))
        with open("/dev/zero") as endless:
            self.assertIn("64 MiB", refused(64, stdin=endless))
        self.assertIn("no UTF-8", self.refused(64, "run", "-p", "ab\udcff"))

    def test_a_file_that_shrinks_while_it_is_read_ends_with_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(shutil.copy(DEMO, folder))
            with subprocess.Popen([support.BINARY, "run", path, "--raw", "-p", "a b a b", "--temp", "0",
                                   "--weights", "mapped", "--repetition-penalty", "0.5"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
                process.stdout.read(4)
                os.truncate(path, 4096)
                _, errors = process.communicate(timeout=support.PATIENCE_S)
            self.assertEqual(process.returncode, 74, errors)
            self.assertRegex(errors.decode(), "^strata: a mapped file has become shorter[^\n]*\n$")

    def test_a_prompt_that_does_not_fit_is_refused_with_the_numbers(self):
        text = self.refused(64, "run", "-p", "word " * 200, "--max-context", "64", "--temp", "0")
        self.assertRegex(text, r"the prompt has \d{3} tokens, the answer is to have at least 1, the context holds 64")
        text = self.refused(64, "run", "-p", "word", "--max-context", "64", "--max-tokens", "64")
        self.assertIn("is to have 64", text)

    def test_options_without_effect_are_named(self):
        result = run("run", "-p", "What is a piano?", "--temp", "0", "--top-k", "5", "--port", "80")
        self.assertEqual(result.stdout, PIANO + "\n")
        self.assertEqual(result.stderr.count("--top-k has no effect"), 1)
        self.assertEqual(result.stderr.count("--port has no effect"), 1)

    def test_a_full_disk_is_an_error(self):
        for words in (["inspect", DEMO], ["--help"], ["--version"], ["run", "--help"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([support.BINARY, *words], stdout=full, text=True,
                                        stderr=subprocess.PIPE, timeout=support.PATIENCE_S)
            self.assertEqual(result.returncode, 74, words)
            self.assertIn("could not be written", result.stderr)


class Scaling(unittest.TestCase):
    """The model was trained on 512 tokens."""

    def context(self, *options):
        return run("run", TINY, "--raw", "-p", "hello", "--temp", "0", "--max-tokens", "2", *options)

    def test_F059_a_scaled_context_can_be_used(self):
        result = self.context("--max-context", "1024", "--rope-scaling", "yarn", "--rope-scale", "2")
        self.assertEqual((result.returncode, result.stderr.count("warning")), (0, 0), result.stderr)
        # 700 tokens of prompt are beyond what it was trained on.
        words = " a" * 700
        options = ["run", TINY, "--raw", "-p", words, "--temp", "0", "--max-tokens", "8",
                   "--max-context", "1024", "--rope-scaling", "yarn", "--rope-scale", "2"]
        result = run(*options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("8 tokens are the limit", result.stderr)
        result = self.context("--max-context", "2048", "--rope-scaling", "yarn", "--rope-scale", "2")
        self.assertRegex(result.stderr, r"warning a context of 2048 tokens is beyond the 1024")

    def test_F059_nonsense_is_refused(self):
        for options in (["--rope-scaling", "linear", "--rope-scale", "2"],
                        ["--rope-scaling", "yarn"],
                        ["--rope-scaling", "yarn", "--rope-scale", "1"],
                        ["--rope-scaling", "yarn", "--rope-scale", "0.5"],
                        ["--rope-scaling", "yarn", "--rope-scale", "2", "--yarn-orig-ctx", "0"],
                        ["--max-context", "1024", "--rope-scaling", "none"]):
            result = self.context(*options)
            self.assertEqual(result.returncode, 64, options)
            self.assertEqual(result.stdout, "")

    def test_F059_scaling_that_is_off_changes_no_bit_and_on_changes_some(self):
        def difference(*options):
            result = run("eval", TINY, "--reference", GOLDEN / "tiny.reference.gguf", "--json", *options)
            return json.loads(result.stdout)["max_abs_logit_diff"]
        plain = difference()
        self.assertEqual(difference("--rope-scaling", "none"), plain)
        self.assertGreater(difference("--rope-scaling", "yarn", "--rope-scale", "2"), 10 * plain)

    def test_F060_beyond_the_trained_context_without_scaling_is_refused(self):
        result = self.context("--max-context", "1024")
        self.assertEqual(result.returncode, 64)
        for word in ("1024", "512", "--rope-scaling yarn", "--rope-scale 2"):
            self.assertIn(word, result.stderr)
        self.assertEqual(self.context("--max-context", "512").returncode, 0)
        # And a prompt beyond it, by default: nothing is cut, nothing is empty.
        result = run("run", TINY, "--raw", "-p", " a" * 600, "--temp", "0")
        self.assertEqual((result.returncode, result.stdout), (64, ""))
        self.assertRegex(result.stderr, r"the prompt has 6\d\d tokens.*the context holds 512")


class Files(unittest.TestCase):
    def test_F121_names_in_every_script_and_length(self):
        names = ["модель.gguf", "日本\u3000語.gguf", "🎹.gguf", "e\u0301.gguf", "two words.gguf",
                 "'quo\"te'.gguf", "100%s.gguf", "x" * 245 + ".gguf", "-dash.gguf"]
        with tempfile.TemporaryDirectory() as folder:
            deep = pathlib.Path(folder, *["d" * 200] * 9)
            deep.mkdir(parents=True)
            paths = [pathlib.Path(folder, name) for name in names] + [deep / "m.gguf"]
            for path in paths:
                os.link(shutil.copy(TINY, folder) if not pathlib.Path(folder, "tiny.gguf").exists()
                        else pathlib.Path(folder, "tiny.gguf"), path)
                for locale in ("C", "C.UTF-8"):
                    result = run("inspect", path, "--json", env=support.environment(LC_ALL=locale))
                    self.assertEqual(result.returncode, 0, f"{path}: {result.stderr}")
                    self.assertEqual(json.loads(result.stdout)["files"][0]["path"],
                                     str(path).replace("\\", "\\\\"))
            link = pathlib.Path(folder, "link.gguf")
            link.symlink_to("модель.gguf")
            self.assertEqual(run("inspect", link).returncode, 0)
            config = pathlib.Path(folder, "конфиг 🎹.json")
            config.write_text(json.dumps({"model": str(paths[0]), "temp": 0, "max-tokens": 2,
                                          "raw": True}))
            result = run("run", "--config", config, "-p", "hello")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_inspect(self):
        result = run("inspect", DEMO)
        self.assertIn("general.architecture", result.stdout)
        self.assertIn("246 tensors", result.stdout)
        data = json.loads(run("inspect", DEMO, "--json").stdout)
        self.assertEqual(len(data["tensors"]), 246)
        self.assertIn({"key": "general.architecture", "type": "string", "value": "qwen4exp",
                       "shortened": False}, data["keys"])


class Numbers(unittest.TestCase):
    def test_bench_advises_the_options_that_it_has(self):
        result = run("bench", DEMO, "--gen", "1000000", "--threads", "1")
        self.assertEqual(result.returncode, 64, result.stderr)
        self.assertIn("lower --depth + --prompt + --gen", result.stderr)
        result = run("bench", DEMO, "--max-context", "1000000", "--threads", "1")
        self.assertIn("lower --max-context", result.stderr)

    def test_bench(self):
        result = run("bench", DEMO, "--prompt", "32", "--gen", "8", "--threads", "1", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        data = json.loads(result.stdout)
        for key in ("prompt_tokens_per_s", "decode_tokens_per_s", "load_s", "peak_rss_bytes",
                    "peak_anon_bytes"):
            self.assertGreater(data[key], 0, key)
        self.assertEqual((data["prompt_tokens"], data["gen_tokens"], data["threads"]), (32, 8, 1))
        self.assertGreater(data["peak_rss_bytes"], data["peak_anon_bytes"])
        # Re-laid weights are memory of ours, mapped ones are not.
        mapped = json.loads(run("bench", "--prompt", "32", "--gen", "1", "--threads", "1",
                                "--weights", "mapped", "--json").stdout)
        self.assertGreater(data["peak_anon_bytes"], mapped["peak_anon_bytes"] + 15_000_000)
        self.assertIsNone(mapped["decode_tokens_per_s"])
        table = run("bench", "--prompt", "32", "--gen", "8", "--repeat", "3").stdout
        self.assertRegex(table, r"decode +[\d.]+ tokens/s")

    def test_version(self):
        result = run("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^strata \d+\.\d+\.\d+ \(commit \w+\+?\)\n")
        self.assertIn("backends: host", result.stdout)


if __name__ == "__main__":
    unittest.main()

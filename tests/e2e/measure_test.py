"""bench with its bounds, depths and windows; models to measure with."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import support
from support import DEMO, run


class Bench(unittest.TestCase):
    def test_bench_says_what_the_memory_allows(self):
        data = json.loads(run("bench", DEMO, "--prompt", "8", "--gen", "8", "--json").stdout)
        if data["bandwidth_bytes_per_s"] is None:
            self.skipTest("too little memory to measure with")
        self.assertGreater(data["read_bytes_per_token"], 1_000_000)
        self.assertLess(data["read_bytes_per_token"], os.path.getsize(DEMO))
        bound = data["bandwidth_bytes_per_s"] / data["read_bytes_per_token"]
        self.assertAlmostEqual(data["decode_bound_tokens_per_s"], bound, delta=1e-6 * bound)
        self.assertAlmostEqual(data["decode_share"], data["decode_tokens_per_s"] / bound, places=9)
        # The gigabyte that it took is not the model's.
        self.assertLess(data["peak_anon_bytes"], 300_000_000)
        table = run("bench", DEMO, "--prompt", "8", "--gen", "8").stdout
        self.assertRegex(table, r"\d % of the [\d.]+ that reading [\d.]+ GB a token at [\d.]+ GB/s")
        without = run("bench", DEMO, "--prompt", "8", "--gen", "8", "--no-bandwidth", "--json").stdout
        self.assertIsNone(json.loads(without)["decode_share"])

    def test_bench_at_a_depth_and_of_windows(self):
        result = run("bench", DEMO, "--prompt", "8", "--gen", "4", "--depth", "8000", "--window", "4",
                     "--no-bandwidth", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        data = json.loads(result.stdout)
        self.assertEqual((data["depth_tokens"], data["prompt_tokens"], data["window_rows"]),
                         (8000, 8, 4))
        self.assertGreater(data["decode_tokens_per_s"], 0)
        self.assertGreater(data["window_ratio"], 0)
        self.assertGreater(data["window_experts_per_layer"], 1)
        for code, options in ((64, ["--depth", "8000", "--max-context", "8000"]),
                              (64, ["--window", "8", "--prefill", "4"]),
                              (64, ["--window", "300"])):
            self.assertEqual(run("bench", DEMO, *options).returncode, code, options)


class Synth(unittest.TestCase):
    """The true geometry has rows that long whatever is left out, so even one layer is 30 MB."""

    def test_a_small_one_runs_and_is_the_same_twice(self):
        with tempfile.TemporaryDirectory() as folder:
            one, two = pathlib.Path(folder, "one.gguf"), pathlib.Path(folder, "two.gguf")
            options = ["--layers", "1", "--experts", "10", "--gate", "Q2_0", "--down", "Q2_0",
                       "--dense", "Q2_0", "--hc", "Q2_0", "--emb", "Q2_0", "--vocab", "1024",
                       "--ple-base", "50"]
            result = run("synth", one, *options, "--threads", "1")
            self.assertEqual((result.returncode, result.stderr), (0, ""), result.stderr)
            said = re.search(r"([\d.]+) GB, of it experts", result.stdout)
            self.assertAlmostEqual(float(said[1]) * 1e9, one.stat().st_size, delta=1e6)
            self.assertEqual(run("synth", two, *options, "--threads", "2").returncode, 0)
            self.assertEqual(one.read_bytes(), two.read_bytes())
            # What is there may have taken a night to download.
            result = run("synth", two, "--header-only")
            self.assertEqual(result.returncode, 64)
            self.assertIn("--force", result.stderr)
            self.assertEqual(one.read_bytes(), two.read_bytes())
            self.assertEqual(run("synth", two, *options, "--force").returncode, 0)
            result = run("bench", one, "--prompt", "4", "--gen", "3", "--no-bandwidth", "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertGreater(json.loads(result.stdout)["decode_tokens_per_s"], 0)
            self.assertEqual(sorted(os.listdir(folder)), ["one.gguf", "two.gguf"])

    def test_an_interrupt_leaves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            # The progress says when it has begun.
            with subprocess.Popen([support.BINARY, "synth", pathlib.Path(folder, "x.gguf"),
                                   "--layers", "4", "--progress"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, env=support.environment()) as process:
                process.stderr.read(20)
                process.send_signal(signal.SIGINT)
                _, err = process.communicate(timeout=support.PATIENCE_S)
                self.assertEqual(process.returncode, 130, err)
            self.assertEqual(os.listdir(folder), [])

    def test_what_cannot_be_is_refused(self):
        for code, options in ((64, []), (64, ["/tmp/x.gguf", "--gate", "Q9"]),
                              (64, ["/tmp/x.gguf", "--down", "Q4_K"]),
                              (64, ["/tmp/x.gguf", "--layers", "0"]),
                              (71, ["/tmp/x.gguf", "--layers", "4000", "--experts", "60000"]),
                              (66, ["/nowhere/x.gguf"])):
            result = run("synth", *options)
            self.assertEqual(result.returncode, code, f"{options}: {result.stderr}")
            self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    unittest.main()

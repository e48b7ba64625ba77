"""From a bound port to a drained end: ports, signals, keys, files."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import support
from support import (DEMO, PATIENCE_S, PIANO, ROOT, Server, content_of, process_exists, question, run,
                     wait_until)

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
# Running answers may go on for 4 s, then they end; the rest is for a busy machine.
DRAIN_S = 20


def frozen_while_loading(*arguments):
    """A server whose engine process is stopped before it is ready."""
    for _ in range(10):
        server = Server(*arguments, ready=False)
        os.kill(server.engine(), signal.SIGSTOP)
        if server.health()[1]["status"] == "starting":
            return server
        server.kill()
    raise AssertionError("the engine is always ready before it can be stopped")


class Ports(unittest.TestCase):
    def test_F119_a_taken_port_is_told_at_once_and_before_the_model_is_read(self):
        with Server() as server:
            begun = time.monotonic()
            # A model that cannot be read: the port comes first.
            result = run("serve", ROOT / "README.md", "--port", server.port)
            self.assertEqual(result.returncode, 74, result.stderr)
            self.assertIn(str(server.port), result.stderr)
            self.assertIn("in use", result.stderr)
            self.assertLess(time.monotonic() - begun, 10)
            self.assertEqual(content_of(server.post(CHAT, question())), PIANO)

    def test_F119_odd_ports_and_hosts(self):
        for options in (["--port", "70000"], ["--port", "abc"], ["--port", "-1"],
                        ["--host", "192.0.2.1", "--api-key", "k"], ["--host", "no.such.host.invalid"]):
            result = run("serve", DEMO, *options)
            self.assertEqual(result.returncode, 64, f"{options} {result.stderr}")
        with Server("--host", "::1") as server:
            self.assertEqual(server.host, "[::1]")

    def test_F119_a_restart_after_a_crash_gets_the_port(self):
        server = Server()
        port, engine = server.port, server.engine()
        connection = server.raw()  # open while it dies
        server.process.kill()
        server.kill()
        wait_until("the engine is gone with its front", lambda: not process_exists(engine))
        with Server("--port", port) as again:
            self.assertEqual(again.port, port)
        connection.close()

    def test_another_machines_address_needs_a_key(self):
        result = run("serve", DEMO, "--host", "0.0.0.0", "--port", "0")
        self.assertEqual(result.returncode, 64)
        self.assertIn("API key", result.stderr)


class Keys(unittest.TestCase):
    def status(self, server, headers, path=CHAT):
        return server.post(path, question(max_tokens=1), headers).status

    def test_F137_keys_by_option_file_and_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "keys")
            path.write_text("# of the team\n\n  file-key  \nother-key\n")
            with Server("--api-key", "a", "--api-key", "b", "--api-key-file", path,
                        env=support.environment(STRATA_API_KEY="unused")) as server:
                self.assertEqual(self.status(server, {}), 401)
                for key in ("a", "b", "file-key", "other-key"):
                    self.assertEqual(self.status(server, {"Authorization": f"Bearer {key}"}), 200)
                for key in ("c", "", "unused", "# of the team"):
                    self.assertEqual(self.status(server, {"Authorization": f"Bearer {key}"}), 401)
                self.assertEqual(self.status(server, {"x-api-key": "a"}), 200)
                self.assertEqual(self.status(server, {}, "/tokenize"), 401)
                self.assertEqual(server.ask("GET", "/health").status, 200)
                # Neither in a log nor, of the environment, in the engine process.
                self.assertNotIn("file-key", server.log())
                engine = server.engine()
                self.assertNotIn(b"-key", pathlib.Path(f"/proc/{engine}/cmdline").read_bytes())
                self.assertNotIn(b"STRATA_API_KEY",
                                 pathlib.Path(f"/proc/{engine}/environ").read_bytes())
        with Server(env=support.environment(STRATA_API_KEY="secret")) as server:
            self.assertEqual(self.status(server, {}), 401)
            self.assertEqual(self.status(server, {"Authorization": "Bearer secret"}), 200)

    def test_F137_an_empty_key_is_an_error_and_not_no_key(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "keys")
            path.write_text("# none\n")
            for options, env in ((["--api-key", ""], {}), (["--api-key-file", path], {}),
                                 ([], {"STRATA_API_KEY": ""})):
                result = run("serve", DEMO, "--port", "0", *options, env=support.environment(**env))
                self.assertEqual(result.returncode, 64, result.stderr)
                self.assertIn("key", result.stderr)


class Health(unittest.TestCase):
    def test_starting_then_ready_then_stopping(self):
        server = frozen_while_loading()
        with server:
            status, body = server.health()
            self.assertEqual((status, body["status"], body["model"]), (503, "starting", "strata-demo"))
            reply = server.post(CHAT, question())
            self.assertEqual(reply.status, 503)
            self.assertIn("retry-after", reply.headers)
            os.kill(server.engine(), signal.SIGCONT)
            server.wait_ready()
            self.assertEqual(server.health()[1]["phase"], "ready")
            self.assertEqual(content_of(server.post(CHAT, question())), PIANO)

    def test_a_model_that_cannot_be_loaded_ends_the_server_with_the_reason(self):
        for arguments, model, code, words in (
                (["--device", "sim:10MiB"], DEMO, 71, "(not enough memory: "),
                (["--max-context", "100000"], DEMO, 64, "8192"),
                ([], str(ROOT / "README.md"), 65, "GGUF"),
                ([], "nowhere.gguf", 66, "nowhere.gguf")):
            result = run("serve", model, "--port", "0", "--log-level", "off", *arguments)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(words, result.stderr)


    def test_figures_of_the_engine_in_health_and_metrics(self):
        with Server("--batch", "3") as server:
            usage = server.post(CHAT, question()).json()["usage"]

            def engine_is_told():  # with its next pulse
                engine = server.health()[1]["engine"]
                return engine["steps"] > 0 and engine["running"] == 0 and engine

            engine = wait_until("a pulse", engine_is_told)
            self.assertEqual((engine["state"], engine["slots"], engine["failed_steps"]), ("ready", 3, 0))
            self.assertGreater(engine["resident_bytes"], engine["anonymous_bytes"])
            self.assertGreater(engine["anonymous_bytes"], 1 << 20)
            reply = server.ask("GET", "/metrics")
            self.assertEqual(reply.status, 200)
            rows = dict(line.rsplit(" ", 1) for line in reply.body.decode().splitlines()
                        if not line.startswith("#"))
            self.assertEqual(float(rows["strata_prompt_tokens_total"]), usage["prompt_tokens"])
            self.assertEqual(float(rows["strata_answer_tokens_total"]), usage["completion_tokens"])
            self.assertEqual(float(rows["strata_engine_steps_total"]), engine["steps"])
            self.assertEqual(rows['strata_engine_state{state="ready"}'], "1")
            self.assertGreater(float(rows["strata_front_resident_bytes"]), 1 << 20)


class Signals(unittest.TestCase):
    def assert_clean(self, server, engine, number=signal.SIGTERM):
        code, seconds = server.stop(number)
        self.assertEqual(code, 0, server.log())
        self.assertLess(seconds, DRAIN_S)
        wait_until("no engine is left", lambda: not process_exists(engine))

    def test_F120_idle_with_an_open_connection_by_each_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with Server(stdin=subprocess.DEVNULL) as server:
                connection = server.connect()
                connection.request("GET", "/health")
                self.assertEqual(connection.getresponse().status, 200)
                self.assert_clean(server, server.engine(), number)
                connection.close()

    def test_F120_while_the_model_is_loaded(self):
        with frozen_while_loading() as server:
            self.assert_clean(server, server.engine())

    def test_F120_while_a_prompt_is_read(self):
        with Server("--prefill", "8") as server:
            ids = server.tokens(" a") * 8000
            results = []
            def ask():
                try:
                    results.append(server.post(COMPLETIONS, {"prompt": ids, "max_tokens": 1}).status)
                except OSError as e:
                    results.append(e)
            thread = threading.Thread(target=ask)
            thread.start()
            wait_until("it is read", lambda: server.health()[1]["requests"] == 1)
            self.assert_clean(server, server.engine())
            thread.join(PATIENCE_S)
            self.assertIn(results[0], (200, 503))  # ended in time, or was told so

    def test_F120_while_an_answer_is_streamed(self):
        with Server() as server:
            stream = server.stream(COMPLETIONS, server.endless())
            events = iter(stream)
            next(events)
            engine = server.engine()
            server.process.send_signal(signal.SIGTERM)
            wait_until("draining", lambda: server.health()[1]["status"] == "stopping" or
                       server.process.poll() is not None)
            rest = list(events)
            self.assertEqual(rest[-1], "[DONE]")
            self.assertIn('"error"', rest[-2])  # the answer would have gone on for longer
            self.assertEqual(server.process.wait(DRAIN_S), 0)
            wait_until("no engine is left", lambda: not process_exists(engine))

    def test_F120_new_requests_are_refused_while_the_last_ones_end(self):
        with Server() as server:
            stream = server.stream(COMPLETIONS, server.endless())
            events = iter(stream)
            next(events)
            server.process.send_signal(signal.SIGTERM)
            wait_until("draining", lambda: server.health()[1]["status"] == "stopping")
            self.assertEqual(server.post(CHAT, question()).status, 503)
            stream.close()
            self.assertEqual(server.process.wait(DRAIN_S), 0)

    def test_F120_the_second_signal_ends_it_at_once(self):
        with Server() as server:
            stream = server.stream(COMPLETIONS, server.endless())
            next(iter(stream))
            engine = server.engine()
            server.process.send_signal(signal.SIGINT)
            wait_until("draining", lambda: server.health()[1]["status"] == "stopping")
            code, seconds = server.stop(signal.SIGINT)
            self.assertEqual(code, 128 + signal.SIGINT)
            self.assertLess(seconds, 3)
            stream.close()
            wait_until("no engine is left", lambda: not process_exists(engine))

    def test_F120_as_the_first_process_of_a_container(self):
        launcher = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*launcher, "true"], capture_output=True).returncode != 0:
            self.skipTest("no process namespaces here")
        with Server(launcher=launcher) as server:
            self.assertEqual(content_of(server.post(CHAT, question())), PIANO)
            front = support.children_of(server.pid)[0]
            engine = wait_until("engine", lambda: support.children_of(front))[0]
            os.kill(front, signal.SIGTERM)
            self.assertEqual(server.process.wait(DRAIN_S), 0)
            self.assertFalse(process_exists(engine))


class Files(unittest.TestCase):
    def test_F121_a_model_in_a_folder_of_any_script(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "модели 日本\u3000 'x' 🎹", "e\u0301 100%.gguf")
            path.parent.mkdir()
            shutil.copy(DEMO, path)
            with Server(model=str(path)) as server:
                self.assertEqual(server.health()[1]["model"], path.stem)
                self.assertEqual(server.ask("GET", "/v1/models").json()["data"][0]["id"], path.stem)
                self.assertEqual(content_of(server.post(CHAT, question())), PIANO)
                self.assertIn(path.stem, server.log())

    def test_a_config_file_and_options_that_have_no_effect(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "c.json")
            path.write_text('{"max-context": 300, "batch": 1, "temp": 0, "threads": 1}')
            with Server("--config", path, "--max-tokens", "5", threads=None) as server:
                models = server.ask("GET", "/v1/models").json()["data"]
                self.assertEqual(models[0]["context_length"], 300)
                self.assertEqual(server.log().count("--max-tokens has no effect"), 1)
                self.assertIn("threads 1 (", server.log())


if __name__ == "__main__":
    unittest.main()

"""The engine process dies, hangs or is let down by its clients; the front goes on."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from support import (BINARY, DEMO, PATIENCE_S, PIANO, ROOT, Server, content_of, environment, joined,
                     process_exists, question, wait_until)

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


class Asking(threading.Thread):
    """A request in the background."""

    def __init__(self, server, body):
        super().__init__(daemon=True)
        self.server, self.body, self.reply = server, body, None
        self.start()

    def run(self):
        self.reply = self.server.post(CHAT, self.body)

    def result(self):
        self.join(PATIENCE_S)
        return self.reply


class EngineFailures(unittest.TestCase):
    def test_F048_a_killed_engine_is_started_again_and_no_silent_request_is_lost(self):
        with Server("--batch", "1") as server:
            engine = server.engine()
            body = server.endless(max_tokens=2500, temperature=1)
            body["seed"] = 11
            whole = joined(server.stream(COMPLETIONS, body))
            stream = server.stream(COMPLETIONS, body)
            events = iter(stream)
            first = next(events)
            self.assertIn("choices", json.loads(first))
            queued = [Asking(server, question()), Asking(server, question("What is 27 + 45?"))]
            wait_until("three requests", lambda: server.health()[1]["requests"] == 3)
            os.kill(engine, signal.SIGKILL)
            # What has begun goes on where it was, with the bytes it would have had.
            again = joined([first, *events])
            self.assertEqual(again["text"], whole["text"])
            self.assertEqual(again["reason"], "length")
            # Who has seen nothing yet gets the answer.
            self.assertEqual(content_of(queued[0].result()), PIANO)
            self.assertEqual(content_of(queued[1].result()), "27 + 45 = 72.")
            self.assertNotEqual(server.engine(), engine)
            self.assertEqual(server.health()[1]["restarts"], 1)
            self.assertEqual(joined(server.stream(CHAT, question()))["text"], PIANO)

    def test_F048_whole_answers_are_made_again_after_their_first_token(self):
        with Server("--batch", "1") as server:
            body = {"messages": question()["messages"], "seed": 4, "temperature": 1, "max_tokens": 600,
                    "logit_bias": server.endless()["logit_bias"]}
            asking = Asking(server, body)
            wait_until("it runs", lambda: server.health()[1]["requests"] == 1)
            os.kill(server.engine(), signal.SIGKILL)
            reply = asking.result()
            self.assertEqual(reply.status, 200, reply.body)
            self.assertEqual(reply.json()["usage"]["completion_tokens"], 600)

    def test_F123_crashes_are_named_and_after_three_of_a_kind_it_gives_up(self):
        with Server() as server:
            for n in (1, 2):
                os.kill(server.engine(), signal.SIGSEGV)
                wait_until("a new engine", lambda: server.health()[1]["restarts"] == n)
                server.wait_ready()
            os.kill(server.engine(), signal.SIGSEGV)
            wait_until("failed", lambda: server.health()[1]["status"] == "failed")
            status, body = server.health()
            self.assertEqual(status, 503)
            self.assertIn("signal 11", body["reasons"][0])
            reply = server.post(CHAT, question())
            self.assertGreaterEqual(reply.status, 500)
            self.assertIn("signal 11", reply.json()["error"]["message"])
            self.assertIn("not started again", server.log())
            self.assertEqual(server.stop()[0], 0)

    def test_F122_a_silent_engine_is_replaced(self):
        with Server("--batch", "1") as server:
            engine = server.engine()
            os.kill(engine, signal.SIGSTOP)
            begun = time.monotonic()
            asking = Asking(server, question())
            self.assertEqual(content_of(asking.result()), PIANO)
            self.assertGreater(time.monotonic() - begun, 5)  # silence is given time
            self.assertFalse(process_exists(engine))
            self.assertIn("silent", server.log())

    def test_the_engine_does_not_outlive_its_front(self):
        server = Server()
        engine = server.engine()
        server.process.kill()
        wait_until("it is gone", lambda: not process_exists(engine))
        server.kill()


class ChangedModels(unittest.TestCase):
    """Another file under the name of the model, and an engine that has to start again."""

    REASON = "the model file has changed since the server started; restart it"

    def replaced(self, path):
        shutil.copy(ROOT / "tests/golden/qwen4exp/tiny.gguf", str(path) + ".new")
        os.replace(str(path) + ".new", path)

    def cut(self, path):
        os.truncate(path, 100_000)

    def removed(self, path):
        path.unlink()

    def test_no_engine_reads_another_model_than_the_front(self):
        for change in (self.replaced, self.cut, self.removed):
            with self.subTest(change.__name__), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "m.gguf")
                shutil.copy(DEMO, path)
                with Server(model=str(path)) as server:
                    self.assertEqual(content_of(server.post(CHAT, question())), PIANO)
                    engine = server.engine()
                    change(path)
                    os.kill(engine, signal.SIGKILL)
                    wait_until("failed", lambda: server.health()[1]["status"] == "failed")
                    self.assertEqual(server.health()[1]["reasons"],
                                     [f"could not be started: {self.REASON}"])
                    reply = server.post(CHAT, question())
                    self.assertEqual(reply.status, 503)
                    self.assertIn("retry-after", reply.headers)
                    self.assertIn(self.REASON, reply.json()["error"]["message"])

    def test_an_engine_refuses_what_the_front_has_not_opened(self):
        front, engine = socket.socketpair()
        with front, engine:
            result = subprocess.run(
                [BINARY, "engine", DEMO, "--fd", str(engine.fileno()), "--incarnation", "1",
                 "--model-files=1:2:3:4.5"], pass_fds=[engine.fileno()], capture_output=True,
                text=True, timeout=PATIENCE_S, env=environment(), check=False)
        self.assertEqual(result.returncode, 65, result.stderr)
        self.assertIn(self.REASON, result.stderr)



class UnheardServer(Server):
    """Its log goes to a full disk, so the port has to be chosen here."""

    def __init__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.host, self.port = probe.getsockname()
        self.log_lines = []
        with open("/dev/full", "w") as full:
            self.process = subprocess.Popen(
                [BINARY, "serve", DEMO, "--port", str(self.port), "--threads", "1"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=full, cwd=ROOT,
                env=environment(), start_new_session=True)
        self.pid = self.process.pid
        self.wait_ready()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE_S)


class Logs(unittest.TestCase):
    """Nobody reads what is logged any more."""

    def answers_and_replaces_its_engine(self, server):
        for _ in range(3):
            self.assertEqual(content_of(server.post(CHAT, question())), PIANO)
        # The front and the next engine have much to tell.
        os.kill(server.engine(), signal.SIGKILL)
        wait_until("a new engine", lambda: server.health()[1]["restarts"] == 1)
        server.wait_ready()
        self.assertEqual(content_of(server.post(CHAT, question())), PIANO)
        self.assertEqual(server.health()[1]["restarts"], 1)

    def test_the_reader_of_the_log_goes(self):
        # A pipe whose reader goes after the line with the address.
        launcher = ["bash", "-c", 'exec "$0" "$@" 2> >(exec sed -u "/serving/q" >&2)']
        with Server(launcher=launcher) as server:
            wait_until("the reader has gone", lambda: len(server.children()) == 1)
            self.answers_and_replaces_its_engine(server)
            self.assertEqual(server.stop()[0], 0)

    def test_the_disk_of_the_log_is_full(self):
        with UnheardServer() as server:
            self.answers_and_replaces_its_engine(server)

    def test_output_for_a_pipe_still_ends_with_its_reader(self):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            result = subprocess.run([BINARY, "inspect", DEMO], stdout=writer, timeout=PATIENCE_S,
                                    stderr=subprocess.DEVNULL, env=environment(), check=False)
        finally:
            os.close(writer)
        self.assertEqual(result.returncode, -signal.SIGPIPE)


class Clients(unittest.TestCase):
    def test_a_client_that_leaves_frees_its_slot(self):
        with Server("--batch", "1") as server:
            for stream in (True, False):
                # Alone it would take the only slot for the whole context.
                connection = server.connect()
                body = {**server.endless(), "stream": stream}
                connection.request("POST", COMPLETIONS, json.dumps(body),
                                   {"Content-Type": "application/json"})
                wait_until("it runs", lambda: server.health()[1]["requests"] == 1)
                if stream:
                    connection.getresponse().readline()
                connection.sock.close()
                connection.close()
                wait_until("it is dropped", lambda: server.health()[1]["requests"] == 0, 10)
            self.assertEqual(content_of(server.post(CHAT, question())), PIANO)

    def test_a_queued_client_that_leaves_is_forgotten(self):
        with Server("--batch", "1") as server:
            running = server.stream(COMPLETIONS, server.endless())
            next(iter(running))
            queued = server.connect()
            queued.request("POST", CHAT, json.dumps(question()), {"Content-Type": "application/json"})
            wait_until("two", lambda: server.health()[1]["requests"] == 2)
            queued.close()
            wait_until("one", lambda: server.health()[1]["requests"] == 1)
            running.close()
            wait_until("none", lambda: server.health()[1]["requests"] == 0)

    def test_more_requests_than_slots_are_all_answered(self):
        with Server("--batch", "2", "--max-context", "256") as server:
            askings = [Asking(server, question()) for _ in range(12)]
            self.assertEqual([content_of(a.result()) for a in askings], [PIANO] * 12)


if __name__ == "__main__":
    unittest.main()

"""Starts the program and talks to it, for the tests of this folder.

STRATA_BINARY is the program, build/release/bin/strata if it is not set. By hand, in this folder:
  python3 -m unittest serve_life_test.Signals
"""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("STRATA_BINARY", str(ROOT / "build/release/bin/strata"))
DEMO = str(ROOT / "models/strata-demo.gguf")
GOLDEN = ROOT / "tests/golden/qwen4exp"

PIANO = ("A piano is a keyboard instrument that is played by depressing keys that cause hammers to "
         "strike tuned strings and produce sounds.")
# What a busy machine may take for what takes a fraction of a second on an idle one.
PATIENCE_S = 60


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("STRATA_")}
    env.update(more)
    return env


def run(*arguments, stdin="", timeout=PATIENCE_S, cwd=ROOT, env=None):
    """The program to its end: returncode, stdout, stderr."""
    return subprocess.run([BINARY, *map(str, arguments)], input=stdin, capture_output=True,
                          text=True, timeout=timeout, cwd=cwd, env=env or environment())


def wait_until(what, condition, limit_s=PATIENCE_S):
    """Polls; a test never sleeps for a fixed time."""
    deadline = time.monotonic() + limit_s
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {limit_s} s")
        time.sleep(0.005)


def process_exists(pid):
    """Running, not merely waiting to be reaped by whoever adopted it."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def children_of(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            found += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return [child for child in found if process_exists(child)]


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Stream:
    """An answer that comes as events."""

    def __init__(self, connection, response):
        self.connection, self.response = connection, response
        self.status = response.status
        self.comments = 0

    def __iter__(self):
        """The data of each event; [DONE] is one of them."""
        for line in self.response:
            line = line.decode("utf-8").rstrip("\r\n")
            if line.startswith(":"):
                self.comments += 1
            elif line.startswith("data: "):
                yield line[len("data: "):]
            elif line:
                raise AssertionError(f"no event stream has such a line: {line}")
        self.close()

    def close(self):
        # The response holds the socket, too.
        self.response.close()
        self.connection.close()


class Server:
    """`strata serve` on a free port. A context: leaves no process behind.

    One thread computes unless told otherwise (None: as many as the program chooses): where several
    tests share few cores, threads that wait for each other would wait for the other tests.
    """

    def __init__(self, *arguments, model=DEMO, ready=True, env=None, launcher=(), stdin=None,
                 threads=1):
        self.log_lines = []
        if threads:
            arguments = [*arguments, "--threads", threads]
        command = [*launcher, BINARY, "serve", model, "--port", "0", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=stdin or subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT,
                                        env=env or environment(), start_new_session=True)
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()
        self.host, self.port = None, None
        wait_until("the address", lambda: self._find_address() or self.process.poll() is not None)
        if ready and self.process.poll() is None:
            self.wait_ready()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def _read_log(self):
        for line in self.process.stderr:
            self.log_lines.append(line.decode("utf-8", "replace").rstrip("\n"))

    def _find_address(self):
        for line in self.log_lines:
            match = re.search(r"serving .* on https?://(.+):(\d+)$", line)
            if match:
                self.host, self.port = match[1], int(match[2])
                return True
        return False

    def log(self):
        return "\n".join(self.log_lines)

    def children(self):
        return children_of(self.pid)

    def engine(self):
        """The pid of the engine process."""
        return wait_until("an engine process", self.children)[0]

    def kill(self):
        if self.process.poll() is None:
            # The engine dies with its front.
            self.process.kill()
        self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        self.process.stderr.close()

    def stop(self, number=signal.SIGTERM, limit_s=PATIENCE_S):
        """Exit code and seconds."""
        begun = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(limit_s)
        self.reader.join(limit_s)
        return code, time.monotonic() - begun

    def wait_ready(self):
        wait_until("ready", lambda: self.process.poll() is not None or self.health()[0] == 200)
        assert self.process.poll() is None, self.log()

    def health(self):
        try:
            reply = self.ask("GET", "/health")
        except OSError as e:
            return 0, {"status": str(e)}
        return reply.status, reply.json()

    def connect(self):
        return http.client.HTTPConnection(self.host.strip("[]"), self.port, timeout=PATIENCE_S)

    def ask(self, method, path, body=None, headers=None):
        connection = self.connect()
        try:
            self._send(connection, method, path, body, headers)
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def post(self, path, body, headers=None):
        return self.ask("POST", path, body, headers)

    def stream(self, path, body, headers=None):
        connection = self.connect()
        self._send(connection, "POST", path, {**body, "stream": True}, headers)
        return Stream(connection, connection.getresponse())

    @staticmethod
    def _send(connection, method, path, body, headers):
        headers = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, headers)

    def raw(self):
        """A plain connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def tokens(self, text, special=False):
        reply = self.post("/tokenize", {"content": text, "parse_special": special})
        return reply.json()["tokens"]

    def endless(self, prompt="Once upon a time", **more):
        """A request whose answer ends at max_tokens alone: no token that would end it can be drawn."""
        ends = self.tokens("<|im_end|><|endoftext|>", special=True)
        assert len(ends) == 2, ends
        return {"prompt": prompt, "temperature": 0, "logit_bias": {str(i): -100 for i in ends},
                **more}


def question(text="What is a piano?", **more):
    return {"messages": [{"role": "user", "content": text}], "temperature": 0, **more}


def content_of(reply):
    """Of a whole chat answer."""
    return reply.json()["choices"][0]["message"]["content"]


def joined(events):
    """Text, reason and usage of a chat or completion stream; checks its shape."""
    text, reasoning, reason, usage, n_usage = "", "", None, None, 0
    events = list(events)
    assert events[-1] == "[DONE]", events[-1]
    for event in map(json.loads, events[:-1]):
        assert "error" not in event, event
        if event.get("usage"):
            usage, n_usage = event["usage"], n_usage + 1
        for choice in event["choices"]:
            assert reason is None, "a choice after its end"
            delta = choice.get("delta", choice)
            text += delta.get("content") or delta.get("text") or ""
            reasoning += delta.get("reasoning_content") or ""
            reason = choice["finish_reason"]
    assert n_usage <= 1, events
    return {"text": text, "reasoning": reasoning, "reason": reason, "usage": usage}

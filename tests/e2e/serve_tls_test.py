"""The server over TLS."""

import json
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import unittest
import urllib.request

from support import Server, environment, question, run, wait_until


@unittest.skipIf(shutil.which("openssl") is None, "openssl is not installed")
class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.cert, cls.key = (str(pathlib.Path(cls.folder.name) / n) for n in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                        "-keyout", cls.key, "-out", cls.cert], check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_answers_whole_and_streamed(self):
        with Server("--tls-cert", self.cert, "--tls-key", self.key, ready=False) as server:
            found = wait_until("the address", lambda: re.search(r"on (https://\S+)", server.log()))
            context = ssl.create_default_context(cafile=self.cert)

            def ask(path, body=None):
                request = urllib.request.Request(found[1] + path, headers={"Content-Type": "application/json"},
                                                 data=body and json.dumps(body).encode())
                return urllib.request.urlopen(request, context=context, timeout=60)

            def ready():
                try:
                    return ask("/health").status == 200
                except OSError:
                    return False

            wait_until("ready", ready)
            whole = json.loads(ask("/v1/chat/completions", question(max_tokens=12)).read())
            text = ""
            for line in ask("/v1/chat/completions", question(max_tokens=12, stream=True)):
                if line.startswith(b"data: {"):
                    text += json.loads(line[6:])["choices"][0]["delta"].get("content", "")
            self.assertEqual(text, whole["choices"][0]["message"]["content"])
            # Who speaks plainly gets nothing.
            plain = server_port(found[1])
            with socket.create_connection(("127.0.0.1", plain), timeout=30) as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertNotIn(b"200 OK", s.recv(4096))

    def test_files_that_do_not_fit_are_named(self):
        for more, word in ((["--tls-cert", self.cert], "both"),
                           (["--tls-cert", self.cert, "--tls-key", self.cert], "cert.pem")):
            result = run("serve", "--port", 0, *more, env=environment())
            self.assertEqual(result.returncode, 64, result.stderr)
            self.assertIn(word, result.stderr)


def server_port(url):
    return int(url.rsplit(":", 1)[1])


if __name__ == "__main__":
    unittest.main()

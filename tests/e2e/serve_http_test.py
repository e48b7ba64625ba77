"""Raw HTTP in front of a real engine."""

import json
import unittest

from support import PIANO, Server, content_of, question

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


class RawHttp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--keepalive-s", "0.05", "--prefill", "8")
        cls.body = json.dumps(question()).encode()

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def exchange(self, *parts):
        """Sends the parts one by one; what comes until the server closes."""
        with self.server.raw() as connection:
            for part in parts:
                connection.sendall(part)
            received = b""
            while True:
                data = connection.recv(65536)
                if not data:
                    return received
                received += data

    def head(self, *lines):
        return "\r\n".join([f"POST {CHAT} HTTP/1.1", "Host: localhost", "Connection: close",
                            "Content-Type: application/json", *lines, "", ""]).encode()

    def assert_answered(self, received):
        self.assertTrue(received.startswith(b"HTTP/1.1 200"), received[:200])
        self.assertIn(PIANO.encode(), received)

    def assert_refused(self, received, *codes):
        self.assertIn(int(received.split()[1]), codes, received[:300])

    def test_F045_bodies_in_every_form(self):
        length = f"Content-Length: {len(self.body)}"
        self.assert_answered(self.exchange(self.head(length), self.body))
        self.assert_answered(self.exchange(self.head(length.lower()),
                                           *[bytes([b]) for b in self.body]))
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part)
                          for part in (self.body[:10], self.body[10:])) + b"0\r\n\r\n"
        self.assert_answered(self.exchange(self.head("Transfer-Encoding: chunked"), chunks))
        received = self.exchange(self.head(length, "Expect: 100-continue"), self.body)
        self.assertTrue(received.startswith(b"HTTP/1.1 100"))
        self.assert_answered(received.split(b"\r\n\r\n", 1)[1])

    def test_F045_conflicting_lengths_are_refused(self):
        length = f"Content-Length: {len(self.body)}"
        self.assert_refused(self.exchange(self.head(length, "Transfer-Encoding: chunked"), self.body),
                            400)
        self.assert_refused(self.exchange(self.head(length, "Content-Length: 3"), self.body), 400)
        self.assert_refused(self.exchange(self.head("Content-Length: 10000000000")), 413)
        self.assert_refused(self.exchange(self.head("Content-Length: -1")), 400)
        self.assertEqual(content_of(self.server.post(CHAT, question())), PIANO)

    def test_F045_pipelined_requests_are_answered_in_order(self):
        first = self.head(f"Content-Length: {len(self.body)}").replace(b"Connection: close\r\n", b"")
        second = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        received = self.exchange(first + self.body + second)
        self.assertEqual(received.count(b"HTTP/1.1 200"), 2)
        self.assertLess(received.index(PIANO.encode()), received.index(b'"ready"'))

    def test_F046_a_stream_shows_signs_of_life_while_a_long_prompt_is_read(self):
        ids = self.server.tokens(" a") * 2500
        stream = self.server.stream(COMPLETIONS, {"prompt": ids, "max_tokens": 2, "temperature": 0})
        events = list(stream)
        self.assertEqual(events[-1], "[DONE]")
        self.assertGreater(stream.comments, 2)
        # Without a stream nothing may come before the answer.
        reply = self.server.post(COMPLETIONS, {"prompt": ids, "max_tokens": 2, "temperature": 0})
        text = "".join(json.loads(e)["choices"][0]["text"] for e in events[:-1])
        self.assertEqual(reply.json()["choices"][0]["text"], text)

    def test_F124_headers_of_common_clients(self):
        length = f"Content-Length: {len(self.body)}"
        for lines in (["Connection: keep-alive, Upgrade", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"],
                      [f"X-Header-{i}: value" for i in range(90)],
                      ["Cookie: a=b; c=d", "User-Agent: " + "x" * 4000, "Accept-Encoding: gzip, br"]):
            head = self.head(length, *lines)
            # Only one Connection line; the server closes after a half-closed client anyway.
            with self.server.raw() as connection:
                connection.sendall(head + self.body)
                received = b""
                while PIANO.encode() not in received:
                    data = connection.recv(65536)
                    self.assertTrue(data, received[:300])
                    received += data
        self.assert_refused(self.exchange(self.head(length, "Content-Encoding: gzip"), self.body), 415)
        self.assert_refused(self.exchange(self.head(length, "X-Long: " + "x" * 100_000), self.body), 431)
        absolute = self.head(length).replace(CHAT.encode(), b"http://localhost" + CHAT.encode(), 1)
        self.assert_refused(self.exchange(absolute + self.body), 200, 400)

    def test_F138_F139_foreign_pages_and_paths(self):
        reply = self.server.post(CHAT, question(), {"Host": "evil.example"})
        self.assertEqual(reply.status, 403)
        reply = self.server.post(CHAT, question(), {"Origin": "https://evil.example"})
        self.assertEqual(reply.status, 403)
        for path in (b"/../../etc/hostname", b"/%2e%2e/%2e%2e/etc/hostname", b"//etc/hostname"):
            received = self.exchange(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                                     % path)
            self.assert_refused(received, 400, 404)


class Cors(unittest.TestCase):
    def test_listed_origins_may_ask(self):
        with Server("--cors-origin", "https://chat.example", "--allowed-host", "box.lan",
                    "--max-body-mib", "1") as server:
            reply = server.post(CHAT, question(), {"Origin": "https://chat.example"})
            self.assertEqual(reply.headers["access-control-allow-origin"], "https://chat.example")
            self.assertEqual(content_of(reply), PIANO)
            self.assertEqual(content_of(server.post(CHAT, question(), {"Host": "box.lan"})), PIANO)
            with server.raw() as connection:
                connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n"
                                   f"Content-Length: {2 << 20}\r\n\r\n".encode())
                self.assertIn(b" 413 ", connection.recv(100))


if __name__ == "__main__":
    unittest.main()

"""Many clients at once.

STRATA_LOAD_S: seconds of each round, 60 if it is not set.
"""

import json
import os
import pathlib
import statistics
import threading
import time
import unittest

from support import Server

SECONDS = float(os.environ.get("STRATA_LOAD_S", "60"))


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024


class Load(unittest.TestCase):
    def round(self, server, n_clients):
        """Gaps between the tokens of all streams, and how often a client was told to come later."""
        gaps, refused, errors, lock = [], [0], [], threading.Lock()
        end = time.monotonic() + SECONDS

        def client(i):
            while time.monotonic() < end:
                mine = []
                try:
                    stream = server.stream("/v1/completions", server.endless(
                        f"Story {i}", max_tokens=64, temperature=1, seed=i))
                    if stream.status == 429:
                        stream.close()
                        with lock:
                            refused[0] += 1
                        time.sleep(0.2)  # Retry-After
                        continue
                    if stream.status != 200:
                        raise AssertionError(f"status {stream.status}")
                    before = None
                    for event in stream:
                        now = time.monotonic()
                        if event != "[DONE]":
                            if "error" in json.loads(event):
                                raise AssertionError(event)
                            if before is not None:
                                mine.append(now - before)
                            before = now
                except Exception as e:  # told below, by the thread that may fail
                    with lock:
                        errors.append(repr(e))
                    return
                with lock:
                    gaps.extend(mine)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(n_clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        return statistics.median(gaps), refused[0], len(gaps)

    def test_two_hundred_clients(self):
        with Server("--batch", 8, "--max-queue", 150) as server:
            few = self.round(server, 8)
            many = self.round(server, 200)
            front, engine = resident(server.pid), resident(server.engine())
            again = self.round(server, 200)
            grown = (resident(server.pid) - front, resident(server.engine()) - engine)
            print(f"\nmedian gap, refusals, tokens: 8 clients {few}, 200 clients {many}, again {again}; "
                  f"grown by {grown} bytes")
            self.assertGreater(many[1], 0)
            self.assertLess(many[0], 1.5 * few[0])
            for bytes_ in grown:
                self.assertLess(bytes_, 16 << 20)
            self.assertEqual(server.health()[0], 200)

    def test_slow_readers_slow_nobody(self):
        with Server("--batch", 4) as server:
            alone = self.round(server, 2)
            lazy = []
            for _ in range(2):
                s = server.raw()
                body = json.dumps({**server.endless(max_tokens=4000), "stream": True}).encode()
                s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                          + str(len(body)).encode() + b"\r\n\r\n" + body)
                lazy.append(s)
            beside = self.round(server, 2)
            for s in lazy:
                s.close()
            print(f"\nmedian gap alone {alone[0]:.4f} s, beside two that do not read {beside[0]:.4f} s")
            # Their rows are computed as well, nothing more.
            self.assertLess(beside[0], 3 * alone[0])


if __name__ == "__main__":
    unittest.main()

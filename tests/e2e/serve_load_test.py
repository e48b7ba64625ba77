"""Many clients at once.

STRATA_LOAD_S: seconds of each round, 60 if it is not set.
"""

import json
import os
import pathlib
import random
import statistics
import threading
import time
import unittest

from support import Server, wait_until

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

    def test_clients_that_come_and_go_leave_nothing(self):
        """500 connections: some read to the end, some close in the middle, some send half a request."""
        draw = random.Random(11)
        with Server("--batch", 4, "--max-queue", 200) as server:
            body = server.endless(max_tokens=60)
            kinds = [draw.choice(("whole", "cut", "cut", "half", "at once")) for _ in range(500)]
            errors, lock = [], threading.Lock()

            def client(kind, n_events, n_tokens):
                try:
                    if kind == "half":
                        s = server.raw()
                        s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
                        s.close()
                        return
                    stream = server.stream("/v1/completions", {**body, "max_tokens": n_tokens})
                    if kind == "at once" or stream.status != 200:
                        return stream.close()
                    for i, _ in enumerate(stream):
                        if kind == "cut" and i == n_events:
                            return stream.close()
                except Exception as e:  # told below, by the thread that may fail
                    with lock:
                        errors.append(repr(e))

            def some(kinds):
                for kind in kinds:
                    client(kind, draw.randint(0, 20), draw.randint(1, 60))

            threads = [threading.Thread(target=some, args=(kinds[i::10],)) for i in range(10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(errors, [])

            def idle():
                text = server.ask("GET", "/metrics").body.decode()
                rows = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
                names = ("strata_engine_running_requests", "strata_engine_waiting_requests",
                         "strata_requests_in_work")
                return all(float(rows[name]) == 0 for name in names)

            wait_until("nobody is served any more", idle)
            # All slots are there: four long answers run at once.
            streams = [server.stream("/v1/completions", {**body, "max_tokens": 3000}) for _ in range(4)]
            wait_until("four answers run", lambda: "strata_engine_running_requests 4" in
                       server.ask("GET", "/metrics").body.decode())
            for stream in streams:
                stream.close()
            wait_until("their slots are free", idle)

    def test_a_long_prompt_beside_five_answers(self):
        """No answer pauses for longer than three of its steps and a chunk of the prompt."""
        options = ["--batch", 6, "--max-context", 24576, "--rope-scaling", "yarn", "--rope-scale", 3,
                   "--prompt-cache-mib", 0]
        with Server(*options) as server:
            words = server.tokens("the river and the garden of a king in the long winter " * 20)
            prompt = [words[(i * 13 + i // 97) % len(words)] for i in range(20000)]
            alone = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1, "temperature": 0})
            self.assertEqual(alone.status, 200, alone.body)
            whole_s = alone.json()["timings"]["prompt_ms"] / 1000
            # The last chunk takes longest: it has most to look at. Twice the mean is more than that.
            chunk_s = 2 * whole_s * 512 / len(prompt)
            times = [[] for _ in range(5)]
            done = threading.Event()

            def client(i):
                for event in server.stream("/v1/completions", server.endless(
                        f"Story {i}", max_tokens=4000, temperature=1, seed=i)):
                    times[i].append(time.monotonic())
                    if done.is_set() and len(times[i]) % 50 == 0:
                        break

            threads = [threading.Thread(target=client, args=(i,)) for i in range(5)]
            for thread in threads:
                thread.start()
            wait_until("all five run", lambda: min(map(len, times)) > 100)
            begun = time.monotonic()
            server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1, "temperature": 0})
            ended = time.monotonic()
            done.set()
            for thread in threads:
                thread.join()

            def gaps(i, first, last):
                inside = [t for t in times[i] if first <= t <= last]
                return [b - a for a, b in zip(inside, inside[1:])]

            step_s = statistics.median(g for i in range(5) for g in gaps(i, 0, begun))
            longest = max(max(gaps(i, begun, ended), default=0) for i in range(5))
            print(f"\nprompt alone {whole_s:.2f} s, beside {ended - begun:.2f} s; step {step_s * 1000:.1f} ms, "
                  f"chunk {chunk_s * 1000:.0f} ms, longest pause {longest * 1000:.0f} ms")
            self.assertLess(longest, 3 * step_s + chunk_s)


if __name__ == "__main__":
    unittest.main()

"""Simulated cards that fail, through the API: what the answers are then, and what is said about it."""

import json
import os
import pathlib
import tempfile
import threading
import unittest

from support import DEMO, PATIENCE_S, PIANO, Server, content_of, question, run, wait_until

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
WORDS = "river piano garden winter bread king bridge music mountain school horse doctor".split()


def long_prompt(n_words):
    return " ".join(WORDS[i * i % len(WORDS)] for i in range(n_words))


class Asking(threading.Thread):
    def __init__(self, server, path, body):
        super().__init__(daemon=True)
        self.server, self.path, self.body, self.reply = server, path, body, None
        self.start()

    def run(self):
        self.reply = self.server.post(self.path, self.body)

    def result(self):
        self.join(5 * PATIENCE_S)
        return self.reply


def metric(server, line):
    text = server.ask("GET", "/metrics").body.decode()
    return float(next(row for row in text.splitlines() if row.startswith(line)).rsplit(" ", 1)[1])


def texts(replies):
    assert all(reply.status == 200 for reply in replies), [reply.body for reply in replies]
    return [reply.json()["choices"][0]["text"] for reply in replies]


class GraphOom(unittest.TestCase):
    """Six answers run, a long prompt comes, and there is no memory for a graph."""

    def answers(self, device):
        with Server("--batch", 7, "--prefill", 128, "--max-context", 1024, "--spec", 0,
                    "--prompt-cache-mib", 0, "--device", device) as server:
            running = [Asking(server, COMPLETIONS, server.endless(f"The {word} is", max_tokens=60))
                       for word in WORDS[:6]]
            wait_until("six run", lambda: server.health()[1]["engine"]["running"] == 6)
            fresh = Asking(server, COMPLETIONS, server.endless(long_prompt(300), max_tokens=8))
            replies = texts([asking.result() for asking in [*running, fresh]])
            health = server.health()[1]
            trips = metric(server, 'strata_engine_trips_total{feature="graphs"}')
            return replies, server.log(), health, trips

    def test_F073_graph_oom(self):
        expected, log, health, trips = self.answers("sim:96MiB")
        self.assertEqual((trips, health["status"]), (0, "ready"))
        self.assertNotIn("graphs off", log)
        # Others fill the card when the first copies for requests are made.
        got, log, health, trips = self.answers(
            "sim:96MiB,others use 40MiB at copy #1 after start,"
            "graph_instantiate fails while free < 64 MiB after start")
        self.assertEqual(got, expected)
        self.assertEqual((trips, health["status"]), (1, "degraded"))
        warnings = [line for line in log.splitlines() if "graphs off on device 1" in line]
        self.assertEqual(len(warnings), 1, log)
        for fact in ("graph of layers 0 to", "graph_instantiate", "resource_exhausted", "device 1",
                     "bytes asked", "free"):
            self.assertIn(fact, warnings[0])
        self.assertIn("graphs off on device 1: a graph of layers", health["reasons"][0])


class NoPeerPrefill(unittest.TestCase):
    """Two cards that reach neither each other nor memory that cannot be pinned."""

    CARDS = ("--device", "sim:48MiB,peer=no,pin=no,link=-1GB/s;sim:48MiB,peer=no,pin=no",
             "--resident-experts", "--expert-cache", 12, "--prefill", 128)

    def compare(self, sizes, context, patience=PATIENCE_S):
        def ask(*options):
            with Server("--max-context", context, *options) as server:
                replies = []
                for n in sizes:
                    body = server.endless(server.tokens(long_prompt(n))[:n], max_tokens=8)
                    asking = Asking(server, COMPLETIONS, body)
                    asking.join(patience)
                    replies.append(asking.reply)
                    self.assertEqual(asking.reply.json()["usage"]["prompt_tokens"], n)
                return texts(replies), server.log()

        expected, _ = ask()
        got, log = ask(*self.CARDS)
        self.assertEqual(got, expected)
        self.assertIn("a link of -1.0 GB/s cannot be; it counts as unknown", log)
        self.assertEqual(log.count("pinning off on device 1"), 1)
        self.assertNotIn("peer copies off", log)

    def test_F089_no_peer_prefill(self):
        self.compare([200, 2000], 3072)

    @unittest.skipUnless(os.environ.get("STRATA_SLOW"), "minutes: STRATA_SLOW=1")
    def test_F089_no_peer_prefill_of_20000_tokens(self):
        self.compare([20000], 40960, 30 * PATIENCE_S)

    HANG = "hang copy #1 of at least 200KiB after start"

    def hang(self, cards):
        return Server("--batch", 1, "--prefill", 64, "--max-context", 1024, "--spec", 0,
                      "--prompt-cache-mib", 0, "--step-limit-s", 3, "--device", cards)

    def test_F089_a_copy_that_hangs_is_named_and_after_two_one_card_goes_on(self):
        """The hand-off of a full chunk never ends; short prompts have a shorter one."""
        with self.hang(f"sim:96MiB,peer=no;sim:96MiB,peer=no,{self.HANG}") as server:
            stuck = Asking(server, COMPLETIONS, server.endless(long_prompt(150), max_tokens=4))
            held = wait_until("it is named", lambda: "held up by copy of" in server.health()[1]
                              .get("engine", {}).get("wait", "") and server.health()[1])
            self.assertIn("the hand-off from device 1 on stream compute of device 2",
                          held["engine"]["wait"])
            waiting = Asking(server, CHAT, question())
            reply = stuck.result()
            self.assertEqual(reply.status, 500, reply.body)
            message = reply.json()["error"]["message"]
            self.assertIn("twice on this request", message)
            self.assertIn("held up by copy of", message)
            self.assertEqual(content_of(waiting.result()), PIANO)
            health = server.health()[1]
            self.assertEqual((health["status"], health["restarts"]), ("degraded", 2))
            self.assertIn("runs on one card (sim:96MiB,peer=no) of 2", health["reasons"][0])
            self.assertIn("runs on one card", server.log())
            self.assertIn("a step of 64 rows (64 of prompts, 0 answers)", server.log())
            # There is no hand-off any more.
            body = server.endless(long_prompt(150), max_tokens=4)
            self.assertEqual(server.post(COMPLETIONS, body).status, 200)

    def test_F089_the_third_hang_is_the_last(self):
        with self.hang(f"sim:96MiB,{self.HANG};sim:96MiB,peer=no,{self.HANG}") as server:
            for _ in range(2):
                body = server.endless(long_prompt(150), max_tokens=4)
                self.assertGreaterEqual(Asking(server, COMPLETIONS, body).result().status, 500)
            wait_until("failed", lambda: server.health()[1]["status"] == "failed")
            self.assertIn("hung 3 times in a row", server.health()[1]["reasons"][0])

    def test_F097_a_card_that_freezes_for_less_than_the_limit(self):
        with Server("--device", "sim:96MiB,freeze copy #1 after start for 0.7s",
                    "--step-limit-s", 20) as server:
            self.assertEqual(content_of(server.post(CHAT, question())), PIANO)
            health = server.health()[1]
            self.assertEqual((health["restarts"], health["engine"]["failed_steps"]), (0, 0))


class Machines(unittest.TestCase):
    def test_a_machine_file_is_what_a_sim_poses_as(self):
        machine = {"name": "two small ones", "ram_mib": 4096, "peer_access": True,
                   "cards": [{"vram_mib": 96, "used_by_others_mib": 8, "link_gbps": 12,
                              "vram_gbps": 500, "launch_us": 5,
                              "faults": ["fail capture #1", "fail copy #1 after start"]},
                             {"vram_mib": 64, "link_gbps": -1}]}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "machine.json")
            file.write_text(json.dumps(machine))
            result = run("run", DEMO, "-p", "What is a piano?", "--temp", 0, "--device", "sim",
                         "--machine", file, "--verbose", "--threads", 1, "--max-context", 512)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout.strip(), PIANO)
            self.assertIn("sim 1 (96 MiB)", result.stderr)
            self.assertIn("sim 2 (64 MiB)", result.stderr)
            self.assertIn("graphs off on device 1", result.stderr)
            self.assertIn("a link of -1.0 GB/s cannot be", result.stderr)
            machine["cards"][0]["faults"] = ["fail walk #1"]
            file.write_text(json.dumps(machine))
            for device, word in (("sim", "fail walk #1"), ("host", "--device sim is wanted")):
                result = run("run", DEMO, "-p", "x", "--device", device, "--machine", file)
                self.assertEqual(result.returncode, 64, result.stderr)
                self.assertIn(word, result.stderr)


if __name__ == "__main__":
    unittest.main()

"""Answers have the same bytes with every depth of guesses, neighbour, kept state and size of chunk.

STRATA_MIXES: random mixes, 200 if it is not set.
"""

import os
import random
import tempfile
import threading
import unittest

from support import Server, run

COMPLETIONS = "/v1/completions"
MIXES = int(os.environ.get("STRATA_MIXES", "200"))
WORDS = ("piano river window garden mountain teacher bridge winter letter market doctor forest hammer "
         "island kitchen library mirror ocean pencil rabbit").split()
SPECS, CHUNKS = (0, 1, 2, 4, 8), (1, 7, 64, 512)


def chat(text, before=""):
    return f"{before}<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


# Half of them share a beginning that is worth keeping.
SYSTEM = "<|im_start|>system\n" + "You are a dictionary that answers in one short sentence. " * 4 + "<|im_end|>\n"
PROMPTS = [chat(f"What is a {word}?") for word in WORDS] + [chat(f"Spell {word}.", SYSTEM) for word in WORDS]


class Answers:
    """Of one server: asks and compares with what was said before."""

    def __init__(self, test, prompts, n_tokens):
        self.test, self.prompts, self.n_tokens = test, prompts, n_tokens
        self.known = {}

    def body(self, i):
        return {"prompt": self.prompts[i], "temperature": 0, "max_tokens": self.n_tokens}

    def said(self, server, i):
        reply = server.post(COMPLETIONS, self.body(i))
        self.test.assertEqual(reply.status, 200, reply.body)
        choice = reply.json()["choices"][0]
        return choice["text"], choice["finish_reason"]

    def learn(self, server):
        for i in range(len(self.prompts)):
            self.known[i] = self.said(server, i)

    def check(self, server, numbers, n_clients, what):
        """These prompts, by so many clients at once."""
        wrong, left, lock = [], list(numbers), threading.Lock()

        def client():
            while True:
                with lock:
                    if not left:
                        return
                    i = left.pop(0)
                try:
                    said = self.said(server, i)
                except Exception as e:  # told below, by the thread that may fail
                    said = repr(e)
                if said != self.known[i]:
                    with lock:
                        wrong.append((i, said, self.known[i]))

        clients = [threading.Thread(target=client) for _ in range(n_clients)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        self.test.assertEqual(wrong, [], what)


class Demo(unittest.TestCase):
    OPTIONS = ["--max-context", 1024]

    @classmethod
    def setUpClass(cls):
        cls.answers = Answers(None, PROMPTS, 24)

    def setUp(self):
        self.answers.test = self
        if not self.answers.known:
            with Server(*self.OPTIONS, "--spec", 0, "--batch", 1, "--prompt-cache-mib", 0) as server:
                self.answers.learn(server)

    def test_every_depth_alone_and_six_at_once_cold_and_warm(self):
        for spec in SPECS:
            with Server(*self.OPTIONS, "--spec", spec, "--batch", 6) as server:
                for n_clients in (1, 6):  # nothing is kept of these prompts, then all
                    with self.subTest(spec=spec, clients=n_clients):
                        self.answers.check(server, range(len(PROMPTS)), n_clients, (spec, n_clients))

    def test_every_chunk(self):
        for chunk in CHUNKS:
            with self.subTest(chunk=chunk), Server(
                    *self.OPTIONS, "--prefill", chunk, "--batch", 3) as server:
                self.answers.check(server, range(len(PROMPTS)), 3, chunk)

    def test_from_files_after_a_restart(self):
        with tempfile.TemporaryDirectory() as folder:
            options = [*self.OPTIONS, "--prompt-cache-dir", folder]
            with Server(*options) as server:
                self.answers.check(server, range(len(PROMPTS)), 1, "before")
                server.stop()
            with Server(*options, "--spec", 4) as server:
                self.answers.check(server, range(len(PROMPTS)), 2, "after")
                reply = server.ask("GET", "/metrics").body.decode()
                cached = next(line for line in reply.splitlines()
                              if line.startswith("strata_engine_cached_tokens_total"))
                self.assertGreater(float(cached.split()[1]), 0)

    def test_random_mixes(self):
        """Each mix: some prompts in some order by some clients, on a server that has lived already."""
        draw = random.Random(7)
        n_servers = 8
        for first in range(0, MIXES, max(1, MIXES // n_servers)):
            options = ["--spec", draw.choice(SPECS), "--prefill", draw.choice(CHUNKS[1:]),
                       "--batch", draw.choice((1, 2, 6)),
                       "--prompt-cache-mib", draw.choice((0, 2, 64)), "--mtp", draw.choice(("auto", "off"))]
            with Server(*self.OPTIONS, *options) as server:
                for mix in range(first, min(MIXES, first + max(1, MIXES // n_servers))):
                    numbers = draw.choices(range(len(PROMPTS)), k=draw.randint(1, 8))
                    clients = draw.choice((1, 3, 6))
                    self.answers.check(server, numbers, clients, (mix, options, numbers, clients))


class Synthetic(unittest.TestCase):
    """Files of true geometry, prompts that are longer than what attention looks at."""

    N_PROMPT, N_TOKENS = 2600, 12

    def compare(self, *types):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "synthetic.gguf")
            made = run("synth", path, "--layers", 4, "--experts", 64, "--mtp", *types, timeout=600)
            self.assertEqual(made.returncode, 0, made.stderr)
            draw = random.Random(3)
            prompts = [[draw.randrange(1, 1000) for _ in range(self.N_PROMPT)] for _ in range(4)]
            answers = Answers(self, prompts, self.N_TOKENS)
            options = ["--max-context", 4096]
            with Server(*options, "--spec", 0, "--batch", 1, "--prompt-cache-mib", 0,
                        model=path, threads=2) as server:
                answers.learn(server)
            for more, n_clients in ((["--spec", 1, "--prefill", 64], 1),
                                    (["--spec", 4, "--batch", 4], 4),
                                    (["--spec", 8, "--prefill", 7], 1),
                                    (["--spec", 2, "--batch", 2], 2)):
                with Server(*options, *more, model=path, threads=2) as server:
                    for again in ("cold", "warm"):
                        answers.check(server, range(4), n_clients, (types, more, again))
            with Server(*options, "--prefill", 1, model=path, threads=2) as server:
                answers.check(server, [0], 1, "tokens one by one")

    def test_q4_k_and_iq4_nl(self):
        self.compare("--gate", "Q4_K", "--down", "IQ4_NL")

    def test_q2_0(self):
        self.compare("--gate", "Q2_0", "--down", "Q2_0")


if __name__ == "__main__":
    unittest.main()

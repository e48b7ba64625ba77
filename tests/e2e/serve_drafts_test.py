"""What guesses are worth: the processor's time of a token with them and without, by turns.

Bounds are wider than what an idle machine gives (docs/performance.md); the figures are printed.
STRATA_DRAFT_ROUNDS: how often each question is asked, 3 if it is not set.
"""

import os
import pathlib
import statistics
import unittest

from support import Server, question

CHAT = "/v1/chat/completions"
ROUNDS = int(os.environ.get("STRATA_DRAFT_ROUNDS", "3"))
WORDS = ("piano river window garden mountain teacher bridge winter letter market doctor forest hammer "
         "island kitchen library mirror ocean pencil rabbit school temple village wheel").split()


def busiest_thread_ns(pid):
    """Processor time of the thread that computes."""
    return max(int((task / "schedstat").read_text().split()[0])
               for task in pathlib.Path(f"/proc/{pid}/task").iterdir())


class Pair:
    """A server without guesses and one with as many as it likes, and what they made of questions."""

    def __init__(self):
        options = ["--batch", 1, "--prompt-cache-mib", 0, "--max-context", 2048]
        self.servers = [Server(*options, "--spec", 0), Server(*options)]
        self.engines = [server.engine() for server in self.servers]

    def close(self):
        for server in self.servers:
            server.kill()

    def answer(self, side, body):
        """ns of the tokens behind the first one, by taking off an answer of one token."""
        server, engine = self.servers[side], self.engines[side]
        before = busiest_thread_ns(engine)
        server.post(CHAT, {**body, "max_tokens": 1})
        between = busiest_thread_ns(engine)
        reply = server.post(CHAT, body).json()
        after = busiest_thread_ns(engine)
        return (after - between) - (between - before), reply

    def compare(self, test, bodies):
        """Speed-up of each question, of the least times of its rounds; guesses and right ones by
        depth."""
        ratios, guessed, right = [], [], []
        for body in bodies:
            least = [None, None]
            for _ in range(ROUNDS):
                replies = []
                for side in (0, 1):
                    ns, reply = self.answer(side, body)
                    replies.append(reply)
                    least[side] = ns if least[side] is None else min(least[side], ns)
                test.assertEqual(replies[0]["choices"][0]["message"], replies[1]["choices"][0]["message"])
                for total, name in ((guessed, "drafts_guessed"), (right, "drafts_right")):
                    counts = replies[1]["timings"][name]
                    total.extend([0] * (len(counts) - len(total)))
                    for depth, n in enumerate(counts):
                        total[depth] += n
            ratios.append(least[0] / least[1])
        return ratios, guessed, right


class Worth(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pair = Pair()

    @classmethod
    def tearDownClass(cls):
        cls.pair.close()

    def told(self, name, ratios, guessed, right):
        median = statistics.median(ratios)
        print(f"\n{name}: {median:.3f} times as fast ({min(ratios):.2f} to {max(ratios):.2f}), "
              f"guessed {guessed}, right {right}")
        return median

    def test_dictionary_questions(self):
        figures = self.pair.compare(self, [question(f"What is a {word}?") for word in WORDS])
        median = self.told("dictionary", *figures)
        _, guessed, right = figures
        self.assertGreaterEqual(right[0], 0.88 * guessed[0])
        self.assertGreater(median, 1.05)

    def test_text_that_drafts_badly(self):
        ends = self.pair.servers[0].tokens("<|im_end|><|endoftext|>", special=True)
        self.assertEqual(len(ends), 2)
        figures = self.pair.compare(self, [
            question(f"Tell me a story of a {word}.", temperature=1.3, seed=i, max_tokens=160,
                     logit_bias={str(id_): -100 for id_ in ends})
            for i, word in enumerate(WORDS)])
        self.assertGreater(self.told("adversarial", *figures), 0.9)


if __name__ == "__main__":
    unittest.main()

"""`strata eval`: the models of tests/golden against what a reference computed from them."""

import json
import pathlib
import tempfile
import unittest

from support import DEMO, GOLDEN, run

# Of every logit; the references are float32 in another order of additions.
BOUND = 2e-4
KEYS = ["tokens", "max_abs_logit_diff", "mean_kl", "argmax_agreement", "draft_max_abs_diff"]


def evaluate(model, reference, *options):
    result = run("eval", model, "--reference", reference, "--json", *options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def tiny(name, *options):
    return evaluate(GOLDEN / f"{name}.gguf", GOLDEN / f"{name}.reference.gguf", *options)[0]


class Tiny(unittest.TestCase):
    N_TOKENS = {"tiny": 120, "tiny-yarn": 120, "tiny-nople": 90}

    def test_logits_and_drafts_in_every_chunk_and_norm(self):
        for name, n_tokens in self.N_TOKENS.items():
            for chunk in ([], ["--prefill", "7"], ["--prefill", "1"]):
                for norm in ([], ["--mtp-hnorm", "stream"], ["--mtp-hnorm", "full"]):
                    with self.subTest(model=name, options=chunk + norm):
                        data = tiny(name, *chunk, *norm)
                        self.assertEqual(list(data), KEYS)
                        self.assertEqual(data["tokens"], n_tokens)
                        self.assertLessEqual(data["max_abs_logit_diff"], BOUND)
                        self.assertLessEqual(data["draft_max_abs_diff"], BOUND)
                        self.assertLess(data["mean_kl"], 1e-8)
                        self.assertEqual(data["argmax_agreement"], 1)

    def test_other_ways_of_computing(self):
        for options in (["--cpu-isa", "avx2"], ["--threads", "1"], ["--weights", "mapped"],
                        ["--weights", "copied"], ["--device", "sim"]):
            self.assertEqual(tiny("tiny", *options), tiny("tiny"), options)
        # Half the bits of the cache cost something, but no token.
        data = tiny("tiny", "--kv", "f16")
        self.assertGreater(data["max_abs_logit_diff"], tiny("tiny")["max_abs_logit_diff"])
        self.assertGreaterEqual(data["argmax_agreement"], 0.99)

    def test_the_wrong_norm_or_file_would_be_seen(self):
        # Else the bounds above would prove nothing.
        data, _ = evaluate(GOLDEN / "tiny.gguf", GOLDEN / "tiny-yarn.reference.gguf")
        self.assertGreater(data["max_abs_logit_diff"], 10 * BOUND)

    def test_without_drafts(self):
        self.assertIsNone(tiny("tiny", "--mtp", "off")["draft_max_abs_diff"])

    def test_what_does_not_fit_together_is_refused(self):
        result = run("eval", GOLDEN / "tiny.gguf", "--reference",
                     GOLDEN / "strata-demo.reference.gguf", "--json")
        self.assertEqual(result.returncode, 64, result.stderr)
        self.assertIn("4096", result.stderr)
        result = run("eval", GOLDEN / "tiny.gguf", "--reference", GOLDEN / "tiny.gguf", "--json")
        self.assertEqual(result.returncode, 65, result.stderr)


class Demo(unittest.TestCase):
    REFERENCE = GOLDEN / "strata-demo.reference.gguf"

    def test_quantisation_costs_little(self):
        data, _ = evaluate(DEMO, self.REFERENCE)
        self.assertEqual(data["tokens"], 30 + 24 + 48 + 19)
        self.assertLessEqual(data["mean_kl"], 0.04)
        self.assertGreaterEqual(data["argmax_agreement"], 0.93)
        self.assertIsNotNone(data["draft_max_abs_diff"])

    def test_a_norm_without_reference_is_said(self):
        data, said = evaluate(DEMO, self.REFERENCE, "--mtp-hnorm", "full")
        self.assertIsNone(data["draft_max_abs_diff"])
        self.assertIn("--mtp-hnorm", said)


class Text(unittest.TestCase):
    def perplexity(self, text, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "text")
            path.write_text(text)
            result = run("eval", DEMO, "--text", path, "--json", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_known_text_is_less_of_a_surprise(self):
        # Of the kind that the model was trained on, and the same words in disorder.
        text = ("A piano is a keyboard instrument that is played by depressing keys that cause "
                "hammers to strike tuned strings and produce sounds. ") * 3
        words = text.split()
        known = self.perplexity(text)
        shuffled = self.perplexity(" ".join(words[::-1]))
        self.assertLess(known["ppl"] * 2, shuffled["ppl"])
        self.assertGreater(known["nll"], 0)
        # Stretches: each begins afresh, and its first token does not count.
        short = self.perplexity(text, "--max-context", "16")
        self.assertLess(short["tokens"], known["tokens"])
        self.assertGreater(short["ppl"], known["ppl"])
        self.assertEqual(self.perplexity(text, "--prefill", "5"), known)


if __name__ == "__main__":
    unittest.main()

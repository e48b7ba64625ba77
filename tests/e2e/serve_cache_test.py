"""What is not computed again: counted, and never seen in an answer."""

import copy
import json
import unittest

from serve_tools_test import TOOLS
from support import Server, question

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
# States below this many tokens are not kept (docs/architecture.md, section 7).
LEAST = 32


class Reuse(unittest.TestCase):
    """Each answer is that of a server that keeps nothing."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server("--prefill", 64, "--max-context", 2048)
        cls.plain = Server("--prefill", 64, "--max-context", 2048, "--prompt-cache-mib", 0)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()
        cls.plain.kill()

    def ask(self, path, body):
        """The answer, the tokens of the prompt, and those that were not computed again."""
        reply, reference = (server.post(path, body) for server in (self.server, self.plain))
        self.assertEqual(reply.status, 200, reply.body)
        told, plain = reply.json(), reference.json()

        def said(answer):
            choice = copy.deepcopy(answer["choices"][0])
            for call in choice.get("message", {}).get("tool_calls", []):
                call["id"] = "of the request"
            return choice

        self.assertEqual(said(told), said(plain))
        self.assertEqual(plain["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        usage = told["usage"]
        return told["choices"][0], usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]

    def common_tokens(self, *bodies):
        """Of their prompts, from the first token on."""
        ids = []
        for body in bodies:
            prompt = self.server.post("/apply-template", body).json()["prompt"]
            ids.append(self.server.tokens(prompt, special=True))
        n = 0
        while n < min(map(len, ids)) and ids[0][n] == ids[1][n]:
            n += 1
        return n

    def test_F055_a_replayed_turn_with_small_differences(self):
        first = question("What is the weather in Paris?", tools=TOOLS, max_tokens=120,
                         enable_thinking=True)
        turn = self.ask(CHAT, first)[0]["message"]
        self.assertTrue(turn.get("tool_calls"), turn)
        self.assertTrue(turn.get("reasoning_content"), turn)

        def replay(turn, result="sunny, 21 degrees", more=()):
            called = turn["tool_calls"][0]["id"]
            return {**first, "messages": [
                *first["messages"], turn,
                {"role": "tool", "tool_call_id": called, "content": result}, *more]}

        bare = {k: v for k, v in turn.items() if k != "reasoning_content"}
        spaced = copy.deepcopy(turn)
        function = spaced["tool_calls"][0]["function"]
        function["arguments"] = json.dumps(json.loads(function["arguments"]), indent=1)
        failed = replay(turn, "Error: no such place", [{"role": "user", "content": "And in Oslo?"}])
        for name, body in {"verbatim": replay(turn), "without its reasoning": replay(bare),
                           "arguments written anew": replay(spaced), "a tool that failed": failed}.items():
            with self.subTest(name):
                _, n_prompt, n_cached = self.ask(CHAT, body)
                common = self.common_tokens(first, body)
                self.assertGreaterEqual(n_cached, LEAST)
                self.assertLess(n_cached, n_prompt)
                # The first turn was read up to its end: at least up to where its question begins.
                self.assertGreaterEqual(n_cached, common - 64, (n_prompt, common))

    def test_F061_prompts_with_a_common_beginning(self):
        words = self.server.tokens("the river and the garden of a king in the long winter " * 60)
        for n in (100, 300, 500):
            with self.subTest(n):
                beginning = [words[0] + n % 7 + 1, *words[:n - 1]]
                cached = []
                for suffix in range(5):
                    prompt = beginning + self.server.tokens(f" number {suffix} says")
                    _, n_prompt, n_cached = self.ask(COMPLETIONS, {
                        "prompt": prompt, "temperature": 0, "max_tokens": 6})
                    self.assertLessEqual(n_cached, n + 2)
                    cached.append(n_cached)
                # Where the second parts from the first a state is kept, for all that follow.
                self.assertGreaterEqual(min(cached[2:]), n - LEAST, cached)

    def test_F063_another_effort_in_the_middle_of_a_chat(self):
        messages = [{"role": "system", "content": "Answer in one short sentence, please. " * 6}]
        before = None
        for text, effort in (("What is a river?", "high"), ("What is bread?", "low"),
                             ("What is a king?", "none"), ("What is a winter?", "high")):
            messages.append({"role": "user", "content": text})
            body = {"messages": messages, "temperature": 0, "max_tokens": 48, "reasoning_effort": effort}
            choice, n_prompt, n_cached = self.ask(CHAT, body)
            if before is not None:
                common = self.common_tokens(before, body)
                self.assertGreaterEqual(n_cached, LEAST)
                self.assertGreaterEqual(n_cached, common - 64, (effort, n_prompt, common))
            before = copy.deepcopy(body)
            messages.append({"role": "assistant", "content": choice["message"]["content"] or ""})


if __name__ == "__main__":
    unittest.main()

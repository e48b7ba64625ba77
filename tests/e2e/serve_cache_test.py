"""What is not computed again: counted, and never seen in an answer."""

import copy
import json
import tempfile
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

    def test_a_system_prompt_is_kept_by_the_first_chat_that_has_it(self):
        system = {"role": "system", "content": "You are a careful dictionary of rare birds. " * 8}
        cached = [self.ask(CHAT, {"messages": [system, {"role": "user", "content": text}],
                                  "temperature": 0, "max_tokens": 6})[2]
                  for text in ("What is a heron?", "Spell it backwards, please.")]
        self.assertEqual(cached[0], 0)
        self.assertGreaterEqual(cached[1], 64)


class LongConversation(unittest.TestCase):
    """The second turn of 4,000 tokens, in the same process and in the next one."""

    def turns(self, n_tokens):
        words = ["the", "river", "and", "a", "garden", "of", "king", "winter", "bridge", "market"]
        text = " ".join(words[(i * 7 + i // 11) % 10] for i in range(n_tokens))
        messages = [{"role": "user", "content": text}]
        return {"messages": messages, "temperature": 0, "max_tokens": 24}

    def ask(self, server, body):
        reply = server.post(CHAT, body)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()

    def test_its_second_turn_starts_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ["--max-context", 8192, "--prompt-cache-dir", folder]
            first = self.turns(3900)
            with Server(*options) as server:
                told = self.ask(server, first)
                self.assertGreater(told["usage"]["prompt_tokens"], 3500)
                whole_ms = told["timings"]["prompt_ms"]
                second = {**first, "messages": [
                    *first["messages"], told["choices"][0]["message"],
                    {"role": "user", "content": "What is a piano?"}]}
                again = self.ask(server, second)
                share = again["timings"]["prompt_ms"] / whole_ms
                server.stop()
            with Server(*options) as server:
                # The process warms up with something else.
                self.ask(server, question("What is a river?"))
                third = self.ask(server, second)
                share_from_file = third["timings"]["prompt_ms"] / whole_ms
            self.assertEqual(third["choices"][0]["message"], again["choices"][0]["message"])
            print(f"\nprompt of {told['usage']['prompt_tokens']} tokens in {whole_ms:.0f} ms; its second "
                  f"turn {share:.3f} of that, from a file {share_from_file:.3f}")
            self.assertGreater(again["usage"]["prompt_tokens_details"]["cached_tokens"], 3500)
            self.assertGreater(third["usage"]["prompt_tokens_details"]["cached_tokens"], 3500)
            self.assertLess(share, 0.10)
            self.assertLess(share_from_file, 0.15)

    def test_an_edit_in_the_middle_reuses_what_is_before_it(self):
        with Server("--max-context", 8192) as server:
            body = self.turns(1500)
            body["messages"] += [{"role": "assistant", "content": "It is a river."},
                                 {"role": "user", "content": self.turns(1500)["messages"][0]["content"]}]
            self.ask(server, body)
            edited = {**body, "messages": [body["messages"][0], {"role": "assistant", "content": "No."},
                                           body["messages"][2]]}
            cached = self.ask(server, edited)["usage"]["prompt_tokens_details"]["cached_tokens"]
            self.assertGreater(cached, 900)


if __name__ == "__main__":
    unittest.main()

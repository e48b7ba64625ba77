"""Calls of tools, reasoning, log-probabilities and several answers, by the demo model."""

import datetime
import json
import math
import unittest

from support import Server, content_of, joined, question


def tool(name, **parameters):
    return {"type": "function", "function": {
        "name": name, "description": f"The {name} of it",
        "parameters": {"type": "object", "properties": {k: {"type": t} for k, t in parameters.items()},
                       "required": list(parameters)}}}


TOOLS = [tool("get_weather", city="string"), tool("calculate", expression="string"),
         tool("lookup", word="string"), tool("get_time", city="string")]


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--batch", 4)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def chat(self, text, **more):
        reply = self.server.post("/v1/chat/completions", question(text, **more))
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json()

    def calls(self, text, **more):
        choice = self.chat(text, tools=TOOLS, max_tokens=200, **more)["choices"][0]
        return choice["finish_reason"], [
            (c["function"]["name"], json.loads(c["function"]["arguments"]))
            for c in choice["message"].get("tool_calls", [])]

    def test_F043_each_choice(self):
        self.assertEqual(self.calls("What is the weather in Paris?"),
                         ("tool_calls", [("get_weather", {"city": "Paris"})]))
        self.assertEqual(self.calls("What is the weather in Paris?", tool_choice="none")[1], [])
        reason, calls = self.calls("Who are you?", tool_choice="required")
        self.assertEqual(reason == "length" or len(calls) > 0, True)
        named = {"type": "function", "function": {"name": "get_time"}}
        reason, calls = self.calls("What is the weather in Paris?", tool_choice=named,
                                   parallel_tool_calls=False)
        self.assertEqual([name for name, _ in calls], ["get_time"])

    def test_F043_strings_of_calls_are_held_to_their_schema(self):
        held = {"type": "function", "function": {"name": "book", "parameters": {
            "type": "object", "required": ["code", "day", "note"], "properties": {
                "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"},
                "day": {"type": "string", "format": "date"},
                "note": {"type": "string", "minLength": 3, "maxLength": 12}}}}}
        n_whole = 0
        for seed in range(8):
            choice = self.server.post("/v1/chat/completions", question(
                "Book it.", tools=[held], tool_choice="required", parallel_tool_calls=False,
                temperature=1.5, seed=seed, max_tokens=200)).json()["choices"][0]
            if choice["finish_reason"] == "length":
                continue
            n_whole += 1
            given = json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])
            self.assertRegex(given["code"], r"\A[A-Z]{2}-[0-9]{3}\Z")
            datetime.date.fromisoformat(given["day"])
            self.assertTrue(3 <= len(given["note"]) <= 12, given)
        self.assertGreater(n_whole, 5)

    def test_F021_a_streamed_call_is_the_whole_one(self):
        body = question("What is the weather in Paris?", tools=TOOLS)
        arguments, names = "", []
        for event in self.server.stream("/v1/chat/completions", body):
            if event == "[DONE]":
                continue
            for choice in json.loads(event)["choices"]:
                for call in choice["delta"].get("tool_calls", []):
                    if "id" in call:
                        names.append(call["function"]["name"])
                    arguments += call["function"].get("arguments", "")
        self.assertEqual((names, json.loads(arguments)), (["get_weather"], {"city": "Paris"}))

    def test_F055_the_result_of_a_tool_leads_to_an_answer(self):
        first = self.chat("What is the weather in Paris?", tools=TOOLS)["choices"][0]["message"]
        second = self.server.post("/v1/chat/completions", {
            "temperature": 0, "tools": TOOLS, "max_tokens": 60,
            "messages": [{"role": "user", "content": "What is the weather in Paris?"}, first,
                         {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"],
                          "content": "sunny, 21 degrees"}]})
        self.assertEqual(second.status, 200, second.body)
        self.assertNotEqual(content_of(second), "")

    def test_F027_a_budget_ends_the_reasoning(self):
        for budget in (0, 8):
            body = question("What is a piano?", enable_thinking=True, reasoning_budget=budget,
                            max_tokens=120)
            message = self.server.post("/v1/chat/completions", body).json()
            usage = message["usage"]["completion_tokens_details"]
            self.assertLess(usage["reasoning_tokens"], budget + 40)
            self.assertNotIn("</think>", message["choices"][0]["message"]["content"] or "")
            stream = joined(self.server.stream("/v1/chat/completions", body))
            self.assertEqual(stream["text"], message["choices"][0]["message"]["content"])
            self.assertEqual(stream["reasoning"],
                             message["choices"][0]["message"].get("reasoning_content", ""))

    def test_F037_F038_log_probabilities(self):
        body = question("What is a piano?", logprobs=True, top_logprobs=20, max_tokens=12)
        reply = self.server.post("/v1/chat/completions", body).json()["choices"][0]
        content = reply["logprobs"]["content"]
        self.assertEqual("".join(t["token"] for t in content), reply["message"]["content"])
        for token in content:
            top = [t["logprob"] for t in token["top_logprobs"]]
            self.assertEqual(top, sorted(top, reverse=True))
            self.assertLessEqual(sum(map(math.exp, top)), 1.0001)
            self.assertEqual(token["top_logprobs"][0]["token"], token["token"])
            self.assertEqual(bytes(token["bytes"]).decode(), token["token"])
        # The same values whatever is sampled beside it.
        again = self.server.post("/v1/chat/completions", {**body, "top_logprobs": 0}).json()
        self.assertEqual([t["logprob"] for t in again["choices"][0]["logprobs"]["content"]],
                         [t["logprob"] for t in content])

    def test_F040_several_answers(self):
        reply = self.chat("Tell me a story.", n=3, seed=5, temperature=1, max_tokens=20)
        texts = [c["message"]["content"] for c in reply["choices"]]
        self.assertEqual(len(set(texts)), 3)
        alone = self.chat("Tell me a story.", seed=5, temperature=1, max_tokens=20)
        self.assertEqual(alone["choices"][0]["message"]["content"], texts[0])

    def test_F022_a_role_marker_is_no_text(self):
        """Only the ends of turns end an answer; another token that steers the model is silent."""
        marker, = self.server.tokens("<|im_start|>", special=True)
        reply = self.chat("What is a piano?", logit_bias={str(marker): 100}, max_tokens=5)
        self.assertEqual(reply["choices"][0]["message"]["content"], "")
        self.assertEqual(reply["choices"][0]["finish_reason"], "length")

    def test_F049_counted_tokens(self):
        body = {"messages": [{"role": "user", "content": "hi"}], "system": "Be kind.",
                "tools": [{"name": "f", "input_schema": {"type": "object"}}]}
        counted = self.server.post("/v1/messages/count_tokens", body).json()["input_tokens"]
        usage = self.server.post("/v1/messages", {**body, "max_tokens": 3}).json()["usage"]
        self.assertEqual(counted, usage["input_tokens"] + usage["cache_read_input_tokens"])

    def test_the_template_shows_what_the_model_reads(self):
        body = question("hi", tools=TOOLS)
        shown = self.server.post("/apply-template", body).json()
        self.assertIn("get_weather", shown["prompt"])
        self.assertTrue(shown["prompt"].endswith("</think>\n\n"), shown["prompt"])
        usage = self.server.post("/v1/chat/completions", {**body, "max_tokens": 1}).json()["usage"]
        self.assertEqual(shown["tokens"], usage["prompt_tokens"])


if __name__ == "__main__":
    unittest.main()

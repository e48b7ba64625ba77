"""What the server answers: the demo model behind HTTP, whole and streamed."""

import concurrent.futures
import json
import unittest

from support import DEMO, PIANO, Server, content_of, joined, question

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-context", "512", "--batch", "3", threads=None)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def post(self, path, body):
        reply = self.server.post(path, body)
        self.assertEqual(reply.status, 200, reply.body)
        return reply

    def refused(self, path, body, param):
        reply = self.server.post(path, body)
        self.assertEqual(reply.status, 400, body)
        error = reply.json()["error"]
        self.assertEqual(error["type"], "invalid_request_error")
        self.assertEqual(error["param"], param, error)
        return error

    def test_the_right_answer_whole_and_streamed(self):
        whole = self.post(CHAT, question()).json()
        self.assertEqual(whole["choices"][0]["message"]["content"], PIANO)
        self.assertEqual(whole["choices"][0]["finish_reason"], "stop")
        self.assertEqual(whole["model"], "strata-demo")
        usage = whole["usage"]
        self.assertEqual((usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]),
                         (21, 37, 58))
        stream = joined(self.server.stream(CHAT, question()))
        self.assertEqual((stream["text"], stream["reason"]), (PIANO, "stop"))

    def test_completions_of_plain_text(self):
        body = {"prompt": "The capital of Japan", "temperature": 0, "max_tokens": 4}
        choice = self.post(COMPLETIONS, body).json()["choices"][0]
        self.assertEqual((choice["text"], choice["finish_reason"]), (" is Tokyo.", "length"))
        self.assertEqual(joined(self.server.stream(COMPLETIONS, body))["text"], " is Tokyo.")
        ids = self.server.tokens("The capital of Japan")
        again = self.post(COMPLETIONS, {**body, "prompt": ids}).json()["choices"][0]
        self.assertEqual(again["text"], " is Tokyo.")

    def test_thinking_is_told_apart(self):
        body = question(enable_thinking=True)
        message = self.post(CHAT, body).json()["choices"][0]["message"]
        self.assertEqual(message["content"], PIANO)
        self.assertIn("noun", message["reasoning_content"])
        stream = joined(self.server.stream(CHAT, body))
        self.assertEqual(stream["text"], PIANO)
        self.assertEqual(stream["reasoning"], message["reasoning_content"])

    def test_models_tokens_and_the_page(self):
        models = self.server.ask("GET", "/v1/models").json()["data"]
        self.assertEqual([(m["id"], m["context_length"]) for m in models], [("strata-demo", 512)])
        text = "Größe 🎹 <|im_end|>"
        self.assertEqual(self.post("/detokenize", {"tokens": self.server.tokens(text)}).json(),
                         {"content": text})
        page = self.server.ask("GET", "/")
        self.assertEqual((page.status, page.headers["content-type"].split(";")[0]), (200, "text/html"))

    def test_F030_the_limit_of_an_answer_holds(self):
        for body in ({"max_tokens": 5}, {"max_completion_tokens": 5},
                     {"max_tokens": 5, "max_completion_tokens": 9}):
            reply = self.post(CHAT, question(**body)).json()
            self.assertEqual(reply["usage"]["completion_tokens"], 5, body)
            self.assertEqual(reply["choices"][0]["finish_reason"], "length")
            self.assertTrue(PIANO.startswith(reply["choices"][0]["message"]["content"]))
        self.assertEqual(content_of(self.post(CHAT, question(max_tokens=None))), PIANO)
        for bad in (0, -1, "5", 5.0):
            self.refused(CHAT, question(max_tokens=bad), "max_tokens")

    def test_F031_a_field_means_the_same_on_both_paths(self):
        prompt = {"prompt": "<|im_start|>user\nWhat is a piano?<|im_end|>\n<|im_start|>assistant\n"
                            "<think>\n\n</think>\n\n"}
        del_ids = self.server.tokens(" keyboard")
        for fields in ({}, {"max_tokens": 3}, {"stop": "played"}, {"temperature": 1, "seed": 5},
                       {"logit_bias": {str(del_ids[0]): -100}}, {"repetition_penalty": 1.5},
                       {"frequency_penalty": 1.5, "presence_penalty": 1.5},
                       {"temperature": 2, "top_k": 1}, {"temperature": 2, "min_p": 1},
                       {"temperature": 2, "top_p": 1e-6}):
            fields = {"temperature": 0, "max_tokens": 50, **fields}
            chat = self.post(CHAT, {**question(), **fields}).json()
            text = self.post(COMPLETIONS, {**prompt, **fields}).json()
            self.assertEqual(chat["choices"][0]["message"]["content"], text["choices"][0]["text"],
                             fields)
            self.assertEqual(chat["usage"], text["usage"], fields)
            self.assertEqual(chat["choices"][0]["finish_reason"],
                             text["choices"][0]["finish_reason"])

    def test_F032_an_answer_that_does_not_fit_is_refused_with_the_numbers(self):
        error = self.refused(CHAT, question(max_tokens=16384), None)
        self.assertEqual(error["code"], "context_length_exceeded")
        for number in ("21", "16384", "491", "512"):
            self.assertIn(number, error["message"])
        self.assertEqual(self.post(CHAT, question(max_tokens=491)).json()["usage"]["total_tokens"], 58)

    def test_F047_a_prompt_of_the_whole_context_is_refused_and_one_less_answered(self):
        ids = self.server.tokens(" a")
        self.assertEqual(len(ids), 1)
        body = {"temperature": 0, "prompt": ids * 511}
        self.assertEqual(self.post(COMPLETIONS, body).json()["usage"]["total_tokens"], 512)
        for n in (512, 513, 5000):
            reply = self.server.post(COMPLETIONS, {**body, "prompt": ids * n})
            self.assertEqual(reply.status, 400)
            self.assertEqual(reply.json()["error"]["code"], "context_length_exceeded")
            self.assertIn(str(n), reply.json()["error"]["message"])

    def test_F033_usage_of_a_stream(self):
        asked = question(stream_options={"include_usage": True})
        events = list(self.server.stream(CHAT, asked))
        last = json.loads(events[-2])
        self.assertEqual(last["choices"], [])
        self.assertEqual((last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"],
                          last["usage"]["total_tokens"]), (21, 37, 58))
        self.assertEqual(last["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        for event in events[:-2]:
            self.assertFalse(json.loads(event).get("usage"))
        for body in (question(), question(stream_options={"include_usage": False})):
            self.assertIsNone(joined(self.server.stream(CHAT, body))["usage"])

    def test_F034_the_joined_stream_is_the_whole_answer(self):
        for i, text in enumerate(["What is a harbor?", "What is 12 + 30?", "Count from 3 to 9.",
                                  "Who are you?", "Spell piano.", "Größe? 🎹", "Tell me a story."]):
            for sampling in ({"temperature": 0}, {"temperature": 1.2, "seed": i}):
                body = {**question(text, max_tokens=60), **sampling,
                        "stream_options": {"include_usage": True}}
                whole = self.post(CHAT, {k: v for k, v in body.items() if k != "stream_options"}).json()
                stream = joined(self.server.stream(CHAT, body))
                choice = whole["choices"][0]
                self.assertEqual(stream["text"], choice["message"]["content"])
                self.assertEqual(stream["reasoning"], choice["message"].get("reasoning_content") or "")
                self.assertEqual(stream["reason"], choice["finish_reason"])
                self.assertEqual(stream["usage"], whole["usage"])

    def test_F035_F036_stop_strings(self):
        # Over several tokens, at the start, several at a time, at the end of the answer, and none.
        for stop, wanted in (("keyboard instru", "A piano is a "), ("A piano", ""),
                             ([" that", "keyboard"], "A piano is a "), (["zzz", "sounds."],
                             PIANO[:-len("sounds.")]), (PIANO, ""), (["\n", "Alice:"], PIANO),
                             ("keyboard instruments", PIANO)):
            body = question(stop=stop)
            reply = self.post(CHAT, body).json()["choices"][0]
            self.assertEqual((reply["message"]["content"], reply["finish_reason"]), (wanted, "stop"))
            stream = joined(self.server.stream(CHAT, body))
            self.assertEqual((stream["text"], stream["reason"]), (wanted, "stop"))

    def test_F039_seeds(self):
        def story(**more):
            return content_of(self.post(CHAT, {**question("Tell me a story.", max_tokens=30),
                                               "temperature": 1, **more}))
        self.assertEqual(story(seed=3), story(seed=3))
        self.assertEqual(story(seed=2**64 - 1), story(seed=2**64 - 1))
        # The same in company: no result depends on what runs beside it.
        alone = [story(seed=i) for i in range(6)]
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            together = list(pool.map(lambda i: story(seed=i), range(6)))
        self.assertEqual(together, alone)
        self.assertGreater(len(set(alone)), 1)
        self.assertGreater(len({story() for _ in range(4)}), 1)
        self.refused(CHAT, question(seed=-1), "seed")

    def test_F040_the_number_of_answers(self):
        self.assertEqual(content_of(self.post(CHAT, question(n=1))), PIANO)
        choices = self.post(CHAT, question(n=2)).json()["choices"]
        self.assertEqual([(c["index"], c["message"]["content"]) for c in choices],
                         [(0, PIANO), (1, PIANO)])
        for n in (0, 10_000, "2"):
            for stream in (False, True):
                self.refused(CHAT, question(n=n, stream=stream), "n")

    def test_F015_bytes_of_a_character_come_together(self):
        # Every token the model can say, so also those with a part of a character.
        for seed in range(4):
            body = {"prompt": "🎹 日本語", "max_tokens": 80, "temperature": 100, "seed": seed}
            whole = self.post(COMPLETIONS, body).json()["choices"][0]["text"]
            parts = [json.loads(e)["choices"][0]["text"]
                     for e in self.server.stream(COMPLETIONS, body) if e != "[DONE]"]
            self.assertEqual("".join(parts), whole)

    def test_what_is_not_there_is_refused_by_name(self):
        for field, value, named in (
                ("tools", [{"type": "function"}], "tools[0].function"),
                ("response_format", {"type": "xml"}, "response_format.type"),
                ("messages", [{"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "data:,"}}]}],
                 "messages[0].content[0].type")):
            self.refused(CHAT, question(**{field: value}), named)

    def test_F041_after_bodies_that_are_no_requests_the_next_one_is_answered(self):
        for body in ("", "{:", "[]", "5", "true", '{"messages": {}}', '{"messages": 5}', "\ufeff{}",
                     '{"messages": [{"role": "alien", "content": "x"}]}', "[" * 100000,
                     '{"messages": [], "messages": []}', '{"temperature": NaN}', '{"x": 1e400}'):
            reply = self.server.post(CHAT, body.encode())
            self.assertEqual(reply.status, 400, body[:50])
            self.assertIn("message", reply.json()["error"])
        self.assertEqual(content_of(self.post(CHAT, question())), PIANO)

    def test_no_prompt_and_no_answer_in_the_log(self):
        self.post(CHAT, question("What is a zither?"))
        line = [l for l in self.server.log_lines if "POST /v1/chat/completions 200" in l][-1]
        self.assertRegex(line, r"prompt=\d+ .*completion=\d+")
        self.assertNotIn("zither", self.server.log())
        self.assertNotIn("keyboard", self.server.log())


class Defaults(unittest.TestCase):
    def test_the_servers_sampling_holds_for_what_a_request_leaves_out(self):
        with Server("--temp", "0", "--weights", "copied", "--device", "sim", "--prefill", "32",
                    "--max-context", "1024", model=DEMO) as server:
            body = {"messages": [{"role": "user", "content": "What is a piano?"}]}
            self.assertEqual(content_of(server.post(CHAT, body)), PIANO)


if __name__ == "__main__":
    unittest.main()

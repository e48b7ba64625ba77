"""Answers that are held to a form: what a library says of them, at a temperature that means nothing.

STRATA_SCHEMAS: how many schemas, 20 if it is not set.
"""

import concurrent.futures
import json
import os
import re
import unittest

from schemas import schemas
from support import DEMO, Server, content_of, question

try:
    import jsonschema
except ImportError:
    jsonschema = None

N_SCHEMAS = int(os.environ.get("STRATA_SCHEMAS", "20"))


def by_schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}


@unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
class Schemas(unittest.TestCase):
    def test_F042_every_finished_answer_validates(self):
        outcomes = {"finished": 0, "cut": 0}
        with Server("--batch", 8, "--max-context", 8192, model=DEMO) as server:
            def one(item):
                i, schema = item
                reply = server.post("/v1/chat/completions", question(
                    "Tell me.", temperature=1.5, seed=i, max_tokens=400,
                    response_format=by_schema(schema)))
                self.assertEqual(reply.status, 200, (schema, reply.body))
                choice = reply.json()["choices"][0]
                if choice["finish_reason"] == "length":
                    return "cut"
                self.assertEqual(choice["finish_reason"], "stop")
                answer = json.loads(choice["message"]["content"])
                jsonschema.Draft202012Validator(schema).validate(answer)
                return "finished"

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                for outcome in pool.map(one, enumerate(schemas(N_SCHEMAS))):
                    outcomes[outcome] += 1
            metrics = server.ask("GET", "/metrics").body.decode()
        figures = {name: float(re.search(rf"^strata_engine_{name}_total (\S+)$", metrics, re.M)[1])
                   for name in ("masks", "mask_seconds")}
        print(f"\n{outcomes}, {figures['masks']:.0f} masks, "
              f"{figures['mask_seconds'] / max(figures['masks'], 1) * 1e6:.1f} us each")
        # Most end by themselves, the others by the limit.
        self.assertGreater(outcomes["finished"], N_SCHEMAS * 0.8)


class Forms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--batch", 4)

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def ask(self, **more):
        return self.server.post("/v1/chat/completions", question("Well?", max_tokens=100, **more))

    def test_grammar_and_regex(self):
        reply = self.ask(grammar='root ::= "the answer is " ("yes" | "no") "."')
        self.assertIn(content_of(reply), ["the answer is yes.", "the answer is no."])
        reply = self.ask(regex="[A-C]{3}-[0-9]{4}", temperature=1, seed=1)
        self.assertRegex(content_of(reply), r"^[A-C]{3}-[0-9]{4}$")
        reply = self.ask(grammar="root ::= root \"a\"")
        self.assertEqual((reply.status, reply.json()["error"]["param"]), (400, "grammar"))

    def test_json_object(self):
        for seed in range(3):
            reply = self.ask(response_format={"type": "json_object"}, temperature=0.5, seed=seed)
            if reply.json()["choices"][0]["finish_reason"] == "stop":
                self.assertIsInstance(json.loads(content_of(reply)), dict)

    def test_F136_hostile_forms_are_refused_while_others_run(self):
        for more in ({"regex": "(" * 60_000}, {"regex": "(((((((("}, {"regex": "(a{0,100000}){0,100000}"},
                     {"grammar": 'root ::= "a" {1000000} {1000000}'},
                     {"response_format": by_schema({"$ref": "#"})},
                     {"response_format": by_schema({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]})},
                     {"regex": "|".join(f"a{i}b*c*d*" for i in range(10_000)) + "(x|y)*" * 3}):
            reply = self.ask(**more)
            self.assertIn(reply.status, (200, 400), reply.body[:300])
            self.assertEqual(self.ask().status, 200)


if __name__ == "__main__":
    unittest.main()

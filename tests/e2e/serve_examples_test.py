"""The examples of docs/api.md do what the page says."""

import json
import re
import shutil
import subprocess
import unittest

from support import PATIENCE_S, ROOT, Server

PAGE = ROOT / "docs" / "api.md"


def examples():
    """The commands of the page, one a piece."""
    block = re.search(r"\n## Examples\n.*?\n```\n(.*?)\n```\n", PAGE.read_text(), re.S)[1]
    lines = "\n".join(line for line in block.splitlines() if not line.startswith("#"))
    return [command.strip() for command in re.split(r"(?m)^(?=curl )", lines) if command.strip()]


@unittest.skipIf(shutil.which("curl") is None, "curl is not installed")
class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.kill()

    def run_as_it_stands(self, command):
        here = command.replace("http://127.0.0.1:8080", f"http://{self.server.host}:{self.server.port}")
        done = subprocess.run(["bash", "-c", here + " --fail-with-body"], capture_output=True,
                              timeout=PATIENCE_S, text=True, check=False)
        self.assertEqual(done.returncode, 0, (command, done.stdout, done.stderr))
        return done.stdout

    def test_each(self):
        commands = examples()
        self.assertGreater(len(commands), 18)
        said = {command: self.run_as_it_stands(command) for command in commands}

        def of(*words):
            found, = [text for command, text in said.items() if all(w in command for w in words)]
            return found

        def message(*words):
            return json.loads(of(*words))["choices"][0]["message"]

        chat = "chat/completions"
        self.assertIn("keyboard instrument", message(chat, "piano")["content"])
        self.assertTrue(of(chat, '"stream": true').endswith("data: [DONE]\n\n"))
        self.assertTrue(message("reasoning_budget")["reasoning_content"])
        calls = [text for command, text in said.items() if "get_weather" in command]
        call = json.loads(calls[0])
        function = call["choices"][0]["message"]["tool_calls"][0]["function"]
        self.assertEqual((function["name"], json.loads(function["arguments"])),
                         ("get_weather", {"city": "Paris"}))
        self.assertTrue(message("call_1")["content"])
        self.assertIn("sum", json.loads(message("json_schema")["content"]))
        self.assertIn(message('"regex"')["content"], ("yes", "no"))
        self.assertEqual(len(json.loads(of('"logprobs"'))["choices"][0]["logprobs"]["content"]), 3)
        self.assertIn("keyboard instrument", json.loads(of("/v1/messages ", "-d"))["content"][0]["text"])
        self.assertIn("keyboard instrument", of("/v1/responses"))
        self.assertGreater(json.loads(of("count_tokens"))["input_tokens"], 5)
        self.assertGreater(json.loads(of("/tokenize"))["count"], 3)


if __name__ == "__main__":
    unittest.main()

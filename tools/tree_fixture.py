"""A small checkout in a temporary folder for the tests of the tree checks."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent


class TreeTest(unittest.TestCase):
    tool = ""  # the script under test, named by each subclass

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def git(self, *arguments):
        subprocess.run(["git", "-C", str(self.root), *arguments], check=True, capture_output=True)

    def run_tool(self, *arguments):
        """(exit status, stdout and stderr) of the tool on this tree."""
        done = subprocess.run([sys.executable, "-B", str(TOOLS / self.tool), *arguments, str(self.root)],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def assert_fine(self, *arguments):
        status, text = self.run_tool(*arguments)
        self.assertEqual(status, 0, text)
        return text

    def assert_refused(self, *words):
        status, text = self.run_tool()
        self.assertEqual(status, 1, text)
        for word in words:
            self.assertIn(word, text)
        return text

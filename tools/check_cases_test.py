import unittest

from tree_fixture import TreeTest


class CheckCasesTest(TreeTest):
    tool = "check_cases"

    def page(self, **statuses):
        rows = [f"| F-{n:03} | title {n} | {statuses.get(f'F{n:03}', 'open: later')} |"
                for n in range(1, 142)]
        self.write("docs/field-cases.md", "# Cases\n\n" + "\n".join(rows) + "\n")

    def setUp(self):
        super().setUp()
        self.write("strata/gguf/reader_test.cpp", "TEST(Reader, F001_cut_files) {\n}\nTEST(Reader, other) {}\n")
        self.write("tests/e2e/api.py", "class T:\n    def test_F030_F032_limits(self):\n        pass\n")
        self.tested = {"F001": "test: `Reader.F001_cut_files`",
                       "F030": "test: `api.py:test_F030_F032_limits`",
                       "F032": "test: `api.py:test_F030_F032_limits`"}

    def test_a_page_that_says_what_is(self):
        self.page(**self.tested)
        self.assertIn("3 of 141 cases are tests", self.assert_fine())

    def test_a_case_called_open_that_is_tested(self):
        self.page(**{**self.tested, "F001": "open: later"})
        self.assert_refused("F-001: docs say open")

    def test_a_case_called_tested_without_a_test(self):
        self.page(**{**self.tested, "F002": "test: `Reader.F002`"})
        self.assert_refused("F-002: docs say test")

    def test_a_wrong_name(self):
        self.page(**{**self.tested, "F001": "test: `Reader.old_name`"})
        self.assert_refused("F-001: docs say `Reader.old_name`")

    def test_a_number_that_is_no_case(self):
        self.page(**self.tested)
        self.write("strata/a_test.cpp", "TEST(A, F999_unknown) {}\n")
        self.assert_refused("F-999: named by A.F999_unknown")

    def test_update_fills_the_names_in(self):
        self.page(F001="test: `old`")
        self.assert_fine("--update")
        self.assert_fine()
        text = (self.root / "docs/field-cases.md").read_text(encoding="utf-8")
        self.assertIn("| F-001 | title 1 | test: `Reader.F001_cut_files` |", text)

    def test_a_page_with_a_row_missing_or_torn(self):
        self.page(**self.tested)
        path = self.root / "docs/field-cases.md"
        text = path.read_text(encoding="utf-8")
        for broken in (text.replace("| F-007 | title 7 | open: later |\n", ""),
                       text.replace("| F-007 | title 7 | open: later |", "| F-007 | title 7 | perhaps |"),
                       text + "| F-007 | title 7 | open: later |\n"):
            path.write_text(broken, encoding="utf-8")
            self.assertEqual(self.run_tool()[0], 2)


if __name__ == "__main__":
    unittest.main()

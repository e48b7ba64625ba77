import unittest

from tree_fixture import TreeTest


def body(n_lines):
    return "".join(f"  x += {i};\n" for i in range(n_lines))


class CheckSizesTest(TreeTest):
    tool = "check_sizes"

    def setUp(self):
        super().setUp()
        self.git("init", "-q")

    def track(self, name, text):
        self.write(name, text)
        self.git("add", "-f", name)

    def test_small_files_and_untracked_ones(self):
        self.track("a.cpp", "int f() {\n" + body(118) + "}\n")
        self.write("untracked.cpp", "\n" * 1000)
        self.assertIn("1 tracked files", self.assert_fine())

    def test_a_long_file(self):
        self.track("a.cpp", "int x;\n" * 800)
        self.assert_fine()
        self.track("b.cpp", "int x;\n" * 801)
        self.track("start", "#!/bin/bash\n" + "true\n" * 801)
        self.track("data.json", "1\n" * 2000)
        text = self.assert_refused("b.cpp: 801 lines", "start: 802 lines")
        self.assertNotIn("data.json", text)

    def test_long_functions_in_all_their_shapes(self):
        shapes = {
            "int f(int a,\n      int b) {\n": ("f", 1),
            "namespace a::b {\nnamespace {\nvoid g() {\n": ("g", 3),
            "class C {\n public:\n  int h() const override {\n": ("h", 2),
            "C::C(int a) : a_{a}, b_(a) {\n": ("b_", 1),
            "TEST(Suite, name) {\n": ("TEST(Suite, name)", 1),
            "template <class T>\n  requires(sizeof(T) > 1)\nauto k(T t) -> std::vector<T> {\n": ("", 1),
            "struct S* make(int n) {\n": ("make", 1),
            "const auto later = [](int x) {\n": ("", 1),
            "bool operator==(const A& a, const A& b) noexcept {\n": ("", 1),
        }
        for head, (name, line) in shapes.items():
            with self.subTest(head=head):
                closing = "}\n" * (head.count("namespace") + head.count("class C")) + "}\n"
                self.track("a.cpp", head + body(121) + closing)
                self.assert_refused(f"a.cpp:{line}: {name}")

    def test_braces_that_are_no_functions(self):
        rows = "".join("  {1, 2},\n" for _ in range(200))
        self.track("a.cpp", "const int kTable[][2] = {\n" + rows + "};\n")
        self.track("b.cpp", "enum class E : int {\n" + "  kA,\n" * 200 + "};\n")
        self.track("c.cpp", "struct S {\n" + "  int f() { return 1; }\n" * 200 + "};\n")
        self.track("d.cpp", "namespace {\n" + "int x;\n" * 200 + "}\n")
        self.track("e.h", 'extern "C" {\n' + "int f(int);\n" * 200 + "}\n")
        self.track("f.cpp", 'auto t = R"(\n' + "{ ( \n" * 200 + ')";\n// {\n/* { */ char c = \'{\';\n')
        self.track("g.h", "#define BIG(x) \\\n" + "  { x; \\\n" * 200 + "\nint y;\n")
        self.assert_fine()

    def test_braces_that_do_not_balance(self):
        self.track("a.cpp", "int f() {\n")
        self.assert_refused("a.cpp: the braces do not balance")

    def test_a_long_python_function(self):
        self.track("a.py", "def f():\n" + "    x = 1\n" * 121)
        self.assert_refused("a.py:1: f has 122 lines")

    def test_exceptions_need_a_reason_and_a_need(self):
        self.track("a.cpp", "int x;\n" * 801)
        self.track("tools/size_exceptions.txt", "# why\na.cpp generated table\n")
        self.assert_fine()
        self.track("a.cpp", "int x;\n")
        self.assert_refused("a.cpp needs no exception")
        self.track("tools/size_exceptions.txt", "a.cpp\n")
        self.assertEqual(self.run_tool()[0], 2)

    def test_heavy_files(self):
        self.track("models/strata-demo.gguf", "x" * 4_000_001)
        self.assert_fine()
        self.track("tests/big.gguf", "x" * 4_000_001)
        self.assert_refused("tests/big.gguf: 4000001 bytes")

    def test_the_whole_tree(self):
        for i in range(13):
            self.track(f"data/{i}.bin", "x" * 4_000_000)
        self.assert_refused("the tracked files hold 52000000 bytes")

    def test_no_checkout(self):
        (self.root / ".git").rename(self.root / "gone")
        self.assertEqual(self.run_tool()[0], 77)


if __name__ == "__main__":
    unittest.main()

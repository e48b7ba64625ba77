import unittest

from tree_fixture import TreeTest

STYLE = """# Style

| module | may include |
| --- | --- |
| base | nothing |
| io, device | base |
| memory | base io device |
| text | base |
| server | base text |
| kernels | base device |
| cli | everything |

| code | meaning |
| --- | --- |
"""


class CheckLayersTest(TreeTest):
    tool = "check_layers"

    def setUp(self):
        super().setUp()
        self.write("docs/style.md", STYLE)
        self.write("strata/base/error.h", "#include <string>\n")
        self.write("strata/memory/plan.cpp", '#include "strata/base/error.h"\n')

    def one(self, name, line):
        """The tree with one more file of one line."""
        self.write(name, line + "\n")

    def test_a_tree_that_follows_the_table(self):
        self.one("strata/cli/main.cpp", '#include "strata/memory/plan.h"\n#include <CLI/CLI.hpp>')
        self.one("strata/memory/store.cpp", '#include "strata/memory/plan.h"\n// #include <boost/asio.hpp>')
        self.assertIn("4 files, 0 violations", self.assert_fine())

    def test_a_module_outside_the_row(self):
        self.one("strata/memory/plan.h", '\n#include "strata/text/bpe.h"')
        self.assert_refused("strata/memory/plan.h:2: memory may not include text")

    def test_rows_do_not_inherit(self):
        self.one("strata/server/http.cpp", '#include "strata/io/file.h"')
        self.assert_refused("server may not include io")

    def test_the_reverse_direction(self):
        self.one("strata/base/log.cpp", '#  include "strata/device/stream.h"')
        self.assert_refused("base may not include device")

    def test_unit_tests_obey_the_table_too(self):
        self.one("strata/text/bpe_test.cpp", '#include "strata/memory/plan.h"')
        self.assert_refused("text may not include memory")

    def test_unknown_modules(self):
        self.one("strata/extra/a.h", "#pragma once")
        self.assert_refused("module extra has no row")

    def test_an_unknown_target(self):
        self.one("strata/base/a.h", '#include "strata/nowhere/b.h"')
        self.assert_refused("no module nowhere")

    def test_relative_includes(self):
        self.one("strata/base/a.cpp", '#include "error.h"')
        self.assert_refused("from the root of the repository")

    def test_third_party_headers(self):
        cases = [("memory/a.cpp", "cuda_runtime.h"), ("kernels/cpu/a.cpp", "hip/hip_runtime.h"),
                 ("text/a.cpp", "boost/beast.hpp"), ("memory/a.cpp", "prometheus/counter.h"),
                 ("text/a.cpp", "nlohmann/json.hpp"), ("server/a.cpp", "CLI/CLI.hpp"),
                 ("base/a.cpp", "spdlog/spdlog.h"), ("memory/a.cpp", "hwloc.h"),
                 ("server/a.cpp", "pcre2.h"), ("memory/a.cpp", "liburing.h"),
                 ("memory/a.cpp", "unistd.h"), ("io/file.cpp", "sys/mman.h"),
                 ("server/a.cpp", "netinet/in.h"), ("base/a.cpp", "gtest/gtest.h"),
                 ("base/a_test.cpp", "benchmark/benchmark.h")]
        for name, header in cases:
            with self.subTest(header=header):
                self.one("strata/" + name, f"#include <{header}>")
                self.assert_refused(f"strata/{name}:1: <{header}> is ")
                (self.root / "strata" / name).unlink()
        self.assert_fine()

    def test_third_party_headers_where_they_belong(self):
        for name, header in [("device/gpu/api.h", "cuda_runtime.h"), ("kernels/gpu/a.cu", "mma.h"),
                             ("server/http.cpp", "boost/beast.hpp"), ("cli/a.cpp", "nlohmann/json.hpp"),
                             ("text/a_test.cpp", "nlohmann/json.hpp"), ("base/log.cpp", "spdlog/spdlog.h"),
                             ("base/topology.cpp", "hwloc.h"), ("text/split.cpp", "pcre2.h"),
                             ("io/uring.cpp", "liburing.h"), ("io/os/file.cpp", "sys/mman.h"),
                             ("base/os/cpu.cpp", "sched.h"), ("base/a_test.cpp", "unistd.h")]:
            self.one("strata/" + name, f"#include <{header}>")
        self.assert_fine()

    def test_isa_files_see_intrinsics_and_plain_types_only(self):
        self.one("strata/kernels/cpu/isa/a.cpp", "#include <immintrin.h>\n#include <cstdint>")
        self.assert_fine()
        self.one("strata/kernels/cpu/isa/b.cpp", "#include <vector>")
        self.one("strata/kernels/cpu/isa/c.cpp", '#include "strata/base/error.h"')
        self.assert_refused("isa/b.cpp:1: isa/ files", "isa/c.cpp:1: isa/ files")

    def test_isa_files_may_share_inl_files_that_obey_the_same_rule(self):
        self.one("strata/kernels/cpu/isa/a.cpp", '#include "strata/kernels/math.inl"')
        self.one("strata/kernels/math.inl", "#include <cstdint>")
        self.assert_fine()
        self.one("strata/kernels/math.inl", "#include <algorithm>")
        self.assert_refused("strata/kernels/math.inl:1: isa/ files")

    def test_helpers_of_tests(self):
        self.one("strata/base/fake_root.h", "#include <gtest/gtest.h>")
        self.one("strata/base/a_test.cpp", '#include "strata/base/fake_root.h"')
        self.assert_fine()
        self.one("strata/base/a.cpp", '#include "strata/base/fake_root.h"')
        self.assert_refused("strata/base/a.cpp:1: includes the test helper")

    def test_getenv_is_for_cli(self):
        self.one("strata/cli/a.cpp", 'auto v = std::getenv("X");')
        self.one("strata/text/a.cpp", '// getenv("X") is for cli\nlog("getenv()");')
        self.assert_fine()
        self.one("strata/text/a.cpp", '\nauto v = std::getenv("X");')
        self.assert_refused("strata/text/a.cpp:2: getenv")

    def test_names_that_say_nothing(self):
        self.one("strata/base/utils.h", "#pragma once")
        self.assert_refused("strata/base/utils.h: a name")

    def test_a_bad_table(self):
        for page, word in [("# no table", "no table"),
                           (STYLE.replace("| base | nothing |", "| base | memory |"), "a cycle"),
                           (STYLE.replace("| base | nothing |\n", ""), "has no row"),
                           (STYLE.replace("| text | base |", "| text, base | base |"), "twice")]:
            with self.subTest(word=word):
                self.write("docs/style.md", page)
                status, text = self.run_tool()
                self.assertEqual(status, 2, text)
                self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()

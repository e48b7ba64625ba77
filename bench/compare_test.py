"""bench/compare.py, with programs that only say numbers."""

import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import compare
from compare import Point, Round

# Says the next of its numbers each time; notes how it was called.
FAKE = """
import json, pathlib, sys
folder, name, keys = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(",")
calls = folder / "calls"
with calls.open("a") as log:
    log.write(json.dumps([name, *sys.argv[4:]]) + "\\n")
n = sum(json.loads(line)[0] == name for line in calls.read_text().splitlines()) - 1
values = json.loads((folder / name).read_text())
value = values[n % len(values)]
if value is None:
    print("no luck", file=sys.stderr)
    sys.exit(3)
print("noise before")
print(json.dumps({keys[0]: value, keys[1]: 10 * value, "bandwidth_bytes_per_s": 4e10,
                  "decode_share": value / 100, "decode_bound_tokens_per_s": 100}))
"""


class Compare(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "fake.py").write_text(FAKE)
        self.model = self.folder / "m.gguf"
        self.model.touch()
        strata = self.folder / "strata"
        strata.write_text(f"#!/bin/sh\nexec {sys.executable} {self.folder}/fake.py {self.folder} ours "
                          "decode_tokens_per_s,prompt_tokens_per_s \"$@\"\n")
        strata.chmod(0o755)
        self.strata = str(strata)
        self.peer = f"{sys.executable} fake.py {self.folder} theirs tg,pp {{file}} {{threads}} {{prompt}} {{gen}}"

    def enterContext(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def say(self, **numbers):
        for name, values in numbers.items():
            (self.folder / name).write_text(json.dumps(values))

    def calls(self):
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]

    def run_it(self, *arguments, code=0):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
            got = compare.main([str(self.model), "--strata", self.strata, "--quiet-wait", "0",
                                *arguments])
        self.assertEqual(got, code, err.getvalue())
        self.err = err.getvalue()
        return out.getvalue()

    def test_the_median_of_the_rounds_ratios_counts_and_the_order_alternates(self):
        # Ratios 2, 10, 3: their median is 3; the ratio of the medians would be 2.
        self.say(ours=[20, 10, 30], theirs=[10, 1, 10])
        text = self.run_it("--threads", "2", "--rounds", "3", "--peer", self.peer, "--peer-folder",
                           str(self.folder), "--prompt", "16", "--gen", "4")
        self.assertIn("| m.gguf | 2 | 10.00 | 20.00 | **3.00** (2.00 to 10.00) |", text)
        self.assertIn("| 40.0 | 20 % | 3 |", text)
        self.assertEqual([call[0] for call in self.calls()],
                         ["theirs", "ours", "ours", "theirs", "theirs", "ours"])
        self.assertEqual(self.calls()[0][1:], [str(self.model), "2", "16", "4"])
        self.assertEqual(self.calls()[1][1:], ["bench", str(self.model), "--prompt", "16", "--gen", "4",
                                               "--threads", "2", "--json"])

    def test_beside_busy_processes_the_kept_share_is_told(self):
        # Idle and busy by turns: half is kept, of the peer a tenth.
        self.say(ours=[20, 10], theirs=[10, 1])
        text = self.run_it("--threads", "1", "--rounds", "2", "--peer", self.peer, "--peer-folder",
                           str(self.folder), "--busy", "1")
        self.assertIn("| 10 % | 50 % | 2 |", text)
        busy = [call for call in self.calls() if "--no-bandwidth" in call]
        self.assertEqual(len(busy), 2)

    def test_a_failed_run_is_left_out(self):
        self.say(ours=[None, 10, 20], theirs=[5])
        text = self.run_it("--threads", "1", "--rounds", "3", "--peer", self.peer, "--peer-folder",
                           str(self.folder))
        self.assertIn("no luck", self.err)
        self.assertIn("| m.gguf | 1 | 5.00 | 15.00 | **3.00** (2.00 to 4.00) |", text)
        self.say(ours=[None])
        self.run_it("--threads", "1", "--rounds", "1", code=1)

    def test_without_a_peer_and_with_a_record(self):
        self.say(ours=[7])
        record = self.folder / "all.json"
        text = self.run_it("--threads", "1,2", "--rounds", "1", "--json", str(record),
                           "--strata-options", "--depth 100")
        self.assertNotIn("peer", text)
        data = json.loads(record.read_text())
        self.assertEqual([entry["threads"] for entry in data], [1, 2])
        self.assertEqual(data[0]["rounds"][0]["strata"]["decode"], 7)
        self.assertGreaterEqual(data[0]["rounds"][0]["strata"]["others"], 0)
        self.assertEqual(self.calls()[0][-2:], ["--depth", "100"])

    def test_nonsense_is_refused(self):
        for arguments in (["nowhere.gguf"], [str(self.model), "--rounds", "0"],
                          [str(self.model), "--threads", "0"], []):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                compare.parse(arguments)
        self.say(ours=[1])
        self.run_it("--busy", "100000", code=1)
        self.assertIn("--busy 100000", self.err)

    def test_waits_for_a_quiet_machine_but_not_for_ever(self):
        now = [0.0]
        loads = iter([2.0, 1.0, 0.4, 0.4])
        def sleep(seconds):
            now[0] += seconds
        self.assertEqual(compare.wait_until_quiet(0.5, 60, lambda: next(loads), sleep, lambda: now[0]), 0.4)
        self.assertEqual(now[0], 2)
        self.assertEqual(compare.wait_until_quiet(0.5, 5, lambda: 3.0, sleep, lambda: now[0]), 3.0)
        self.assertEqual(now[0], 7)

    def test_spinners_spin_where_they_are_told_and_end(self):
        with compare.Spinners(1) as spinners:
            pid = spinners.running[0].pid
            self.assertEqual(os.sched_getaffinity(pid), {spinners.processors[0]})
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())

    def test_spinners_end_with_a_parent_that_is_killed(self):
        code = ("import compare, time\nwith compare.Spinners(1) as s:\n"
                "    print(s.running[0].pid, flush=True)\n    time.sleep(60)")
        folder = pathlib.Path(compare.__file__).parent
        with subprocess.Popen([sys.executable, "-B", "-c", code], cwd=folder, text=True,
                              stdout=subprocess.PIPE) as parent:
            pid = int(parent.stdout.readline())
            parent.kill()
        deadline = time.monotonic() + 60
        while pathlib.Path(f"/proc/{pid}/cmdline").exists() and self.runs(pid):
            self.assertLess(time.monotonic(), deadline, "it still spins")
            time.sleep(0.01)

    @staticmethod
    def runs(pid):
        """Not merely waiting to be reaped by whoever adopted it."""
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def test_rounds_without_a_pair_give_no_ratio(self):
        point = Point(2.0, 3.0, 0, 0)
        rounds = [Round(strata=point), Round(peer=point), Round(strata=point, peer=Point(1.0, 1.0, 0, 0))]
        self.assertEqual(compare.quotients(rounds, compare.part("strata", "decode"),
                                           compare.part("peer", "decode")), [2.0])


if __name__ == "__main__":
    unittest.main()

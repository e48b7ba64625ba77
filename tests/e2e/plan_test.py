"""plan: what would lie where, for machines that are not here, from a header alone."""

import json
import os
import pathlib
import tempfile
import time
import unittest

from support import DEMO, ROOT, run

PLANS = ROOT / "tests/golden/plan"
HEADER = ROOT / "tests/golden/headers/flash-next-q4.gguf"
MACHINES = sorted(path.stem for path in (PLANS / "machines").glob("*.json"))


def plan(*arguments, code=0):
    result = run("plan", *arguments, "--json")
    if result.returncode != code:
        raise AssertionError(f"{arguments}: {result.returncode}: {result.stderr}")
    return json.loads(result.stdout), result.stderr


def machine(name):
    return PLANS / "machines" / f"{name}.json"


class Wishes(unittest.TestCase):
    def test_a_draft_layer_that_the_file_does_not_have(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "no-draft.gguf")
            self.assertEqual(run("synth", path, "--header-only").returncode, 0)
            for wish, told in (("on", True), ("auto", False), ("off", False)):
                _, stderr = plan(path, "--machine", machine(MACHINES[0]), "--mtp", wish)
                self.assertEqual("the model has no MTP layer" in stderr, told, stderr)


class Golden(unittest.TestCase):
    """tests/golden/plan/README.md says how a person checks them."""

    def test_totals_of_all_machines(self):
        self.assertEqual(len(MACHINES), 6)
        for name in MACHINES:
            with self.subTest(name):
                began = time.monotonic()
                result = run("plan", HEADER, "--machine", machine(name), "--json")
                self.assertLess(time.monotonic() - began, float(os.environ.get("STRATA_PATIENCE", 5)))
                got = json.loads(result.stdout)
                path = PLANS / f"{name}.json"
                if os.environ.get("STRATA_WRITE_GOLDEN"):
                    path.write_text(json.dumps(totals(got), indent=1) + "\n", encoding="utf-8")
                self.assertEqual(totals(got), json.loads(path.read_text(encoding="utf-8")))
                self.assertEqual(result.returncode, 0 if got["fits"] else 71)


def totals(got):
    """The bytes; what is expected of them may be judged better one day."""
    def device(d):
        kept = {key: d[key] for key in ("name", "budget_bytes", "reserve_bytes", "peak_bytes")}
        if "expert_slots" in d:
            kept["expert_slots"] = d["expert_slots"]
        kept["lines"] = {f"{line['owner']} / {line['name']} ({'+'.join(line['phases'])})": line["bytes"]
                         for line in d["lines"] if not line.get("mapped")}
        return kept
    return {"fits": got["fits"], "max_context": got["max_context"], "prefill": got["prefill"],
            "stages": got["stages"], "draft": got["draft"],
            "cards": [device(card) for card in got["cards"]], "ram": device(got["ram"]),
            "storage": got["storage"]}


class Sums(unittest.TestCase):
    def test_lines_add_up_to_the_peak_and_stay_in_the_budget(self):
        for name in MACHINES:
            got, _ = plan(HEADER, "--machine", machine(name))
            for device in [*got["cards"], got["ram"]]:
                with self.subTest(machine=name, device=device["name"]):
                    peaks = {}
                    for phase in ("load", "prompt", "decode", "draft-prompt", "restore"):
                        peaks[phase] = sum(line["bytes"] for line in device["lines"]
                                           if not line.get("mapped")
                                           and ("always" in line["phases"] or phase in line["phases"]))
                    self.assertEqual(max(peaks.values()), device["peak_bytes"])
                    self.assertLessEqual(device["peak_bytes"], device["budget_bytes"])

    def test_a_larger_reserve_takes_as_much_from_the_card(self):
        before, _ = plan(HEADER, "--machine", machine("rtx5070-12-64"), "--vram-reserve-mib", "500")
        after, _ = plan(HEADER, "--machine", machine("rtx5070-12-64"), "--vram-reserve-mib", "1500")
        taken = before["cards"][0]["peak_bytes"] - after["cards"][0]["peak_bytes"]
        self.assertAlmostEqual(taken, 1000 << 20, delta=4 << 20)

    def test_nonsense_rates_are_unknown_and_told(self):
        got, told = plan(HEADER, "--machine", machine("two-7900xt-20-30"))
        self.assertIn("-1.0 GB/s cannot be", told)
        self.assertIsNone(got["expected"]["prompt_tokens_per_s"])


class Refusals(unittest.TestCase):
    def test_what_does_not_fit_says_need_have_and_what_would_help(self):
        result = run("plan", HEADER, "--machine", machine("rtx5070-12-64"), "--max-context", "262144",
                     "--batch", "16", "--prefill", "8192")
        self.assertEqual(result.returncode, 71, result.stdout)
        for part in ("card0 needs", "may be used", "--max-context", "--prefill"):
            self.assertIn(part, result.stderr)

    def test_bad_machines_and_splits(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder, "bad.json")
            bad.write_text('{"ram_mib": 1000, "cards": [{"vram": 5}]}', encoding="utf-8")
            result = run("plan", HEADER, "--machine", bad)
            self.assertEqual(result.returncode, 64)
            self.assertIn('cards[0]: "vram" is not known', result.stderr)
            self.assertEqual(run("plan", HEADER, "--machine", folder + "/none.json").returncode, 66)
        for split in ("a", "48,1", "20,28"):
            result = run("plan", HEADER, "--machine", machine("rtx5070-12-64"), "--layer-split", split)
            self.assertEqual(result.returncode, 64, split)

    def test_a_header_can_be_planned_and_inspected_but_not_run(self):
        self.assertEqual(run("inspect", HEADER).returncode, 0)
        result = run("run", HEADER, "-p", "x")
        self.assertEqual(result.returncode, 65)
        self.assertIn("planned with", result.stderr)

    def test_this_machine(self):
        got, _ = plan(DEMO)
        self.assertTrue(got["fits"])
        self.assertEqual(got["cards"], [])
        self.assertIn("demo", run("plan", DEMO).stdout)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Writes the seeds of template_fuzz: python3 tests/fuzz/make_template_seeds.py FOLDER

The golden templates, statements and expressions (tests/golden/template), several of those that render to
a file, each with bytes that make a context. Running it again gives the same bytes.
"""

import json
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT.parent.parent / "tools"))
import pack_golden  # noqa: E402

GOLDEN = ROOT.parent / "golden/template"


def context(seed):
    source = random.Random(seed)
    # Mostly lists, maps and text, so that loops have something to go through.
    kinds = [0x37, 0x38, 0x28, 0x04, 0x14, 0x02, 0x01]
    return bytes(source.choice(kinds) if source.random() < 0.7 else source.randrange(256) for _ in range(96))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    document = json.loads(pack_golden.read(GOLDEN / "cases.json.tar.xz"))
    seeds = {path.stem: path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.jinja"))}
    sources = [(c["name"].split("/")[0], c["source"], "expected" in c) for c in document["cases"] if "source" in c]
    for kind in ("expression", "statement"):
        good = [source for k, source, renders in sources if k == kind and renders]
        bad = [source for k, source, renders in sources if k == kind and not renders]
        for i in range(0, len(good), 8):
            seeds[f"{kind}-{i // 8}"] = "\n".join(good[i:i + 8])
        for i, source in enumerate(bad):
            seeds[f"{kind}-refused-{i}"] = source
    for number, (name, source) in enumerate(sorted(seeds.items())):
        (folder / name).write_bytes(source.encode("utf-8") + b"\0" + context(number))
    print(f"{len(seeds)} seeds")


if __name__ == "__main__":
    main()

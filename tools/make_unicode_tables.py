#!/usr/bin/env python3
"""Writes strata/text/unicode_tables.cpp: character classes and case mappings as Python has them.

Usage: tools/make_unicode_tables.py > strata/text/unicode_tables.cpp
The Unicode version is that of the Python that runs this; the file names it.
"""
import sys
import unicodedata

ALPHA, DECIMAL, DIGIT, NUMERIC, PRINTABLE, UPPER, LOWER, TITLE, IGNORABLE = (1 << i for i in range(9))
LAST = 0x110000


def flags(c):
    cased = c.isupper() or c.islower() or c.istitle()
    # A final sigma looks over case-ignorable characters at its left.
    ignorable = (c + "\u03a3").lower()[-1] != "\u03c2" if cased else ("A" + c + "\u03a3").lower()[-1] == "\u03c2"
    return (
        ALPHA * c.isalpha() | DECIMAL * c.isdecimal() | DIGIT * c.isdigit() | NUMERIC * c.isnumeric()
        | PRINTABLE * c.isprintable() | UPPER * c.isupper() | LOWER * c.islower()
        | TITLE * (c.istitle() and not c.isupper()) | IGNORABLE * ignorable
    )


def mappings(fold):
    """(ranges of one-to-one mappings, one-to-many mappings)"""
    single, many = [], []
    for i in range(LAST):
        if 0xD800 <= i < 0xE000:
            continue
        to = fold(chr(i))
        if to == chr(i):
            continue
        if len(to) > 1:
            many.append((i, to))
            continue
        delta = ord(to) - i
        if single:
            first, last, step, d = single[-1]
            gap = i - last
            if d == delta and gap <= 2 and step in (0, gap):
                single[-1] = (first, i, gap, d)
                continue
        single.append((i, i, 0, delta))
    return [(f, l, s or 1, d) for f, l, s, d in single], many


def lines(items, width=96):
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > width:
            yield line
            line = "   "
        line += " " + item + ","
    yield line


def main():
    print(f"// Made by tools/make_unicode_tables.py from Unicode {unicodedata.unidata_version}. Do not edit.")
    print('#include "strata/text/unicode_tables.h"\n')
    print("namespace strata::text {\n")
    print("// clang-format off")
    runs = []
    previous = None
    for i in range(LAST):
        f = flags(chr(i))
        if f != previous:
            runs.append(f"{i << 9 | f}")
            previous = f
    print("const uint32_t kCharacterRuns[] = {")
    print("\n".join(lines(runs)))
    print("};")
    print(f"const size_t kCharacterRunCount = {len(runs)};\n")
    for name, fold in (("Upper", str.upper), ("Lower", str.lower), ("Title", str.title)):
        single, many = mappings(fold)
        print(f"const CaseRange k{name}Ranges[] = {{")
        print("\n".join(lines("{%d, %d, %d, %d}" % r for r in single)))
        print("};")
        print(f"const size_t k{name}RangeCount = {len(single)};\n")
        print(f"const CaseExpansion k{name}Expansions[] = {{")
        print("\n".join(lines("{%d, {%s}}" % (i, ", ".join(str(ord(c)) for c in to)) for i, to in many)))
        print("};")
        print(f"const size_t k{name}ExpansionCount = {len(many)};\n")
    print("// clang-format on\n")
    print("}  // namespace strata::text")


if __name__ == "__main__":
    sys.exit(main())

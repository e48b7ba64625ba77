#!/usr/bin/env python3
"""Writes the seeds of gguf_fuzz: python3 tests/fuzz/make_gguf_seeds.py FOLDER

A small valid file with every kind of value, the same with each count, length and type of its header
changed, two shards, other alignments, and the first bytes of files that are something else. Seeds are
below 2 KiB each; running it again gives the same bytes. Each seed is also opened by a unit test.
"""

import pathlib
import struct
import sys

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMAT = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q",
          I64: "q", F64: "d"}
TYPE_F32, TYPE_Q4_0, TYPE_I8, TYPE_Q2_0 = 0, 2, 24, 42
BLOCK = {TYPE_F32: (1, 4), TYPE_Q4_0: (32, 18), TYPE_I8: (1, 1), TYPE_Q2_0: (64, 18)}


class File:
    """Header bytes with the places of its counts, lengths and types: (name, offset, size, kind)."""

    def __init__(self, keys, tensors, version=3, alignment=32):
        self.bytes = bytearray(b"GGUF" + struct.pack("<I", version))
        self.fields = []
        self.number("tensors", "Q", len(tensors), "count")
        self.number("keys", "Q", len(keys), "count")
        for index, (key, kind, value) in enumerate(keys):
            self.string(f"key{index}", key)
            self.number(f"key{index}-type", "I", kind, "type")
            self.value(f"key{index}", kind, value)
        offset = 0
        data = bytearray()
        for index, (name, kind, dims) in enumerate(tensors):
            self.string(f"tensor{index}", name)
            self.number(f"tensor{index}-rank", "I", len(dims), "count")
            n_values = 1
            for dim in dims:  # innermost first
                self.number(f"tensor{index}-dim", "Q", dim, "extent")
                n_values *= dim
            self.number(f"tensor{index}-type", "I", kind, "type")
            self.number(f"tensor{index}-offset", "Q", offset, "offset")
            values, n_bytes = BLOCK[kind]
            chunk = bytes(range(1, 256)) * 8
            data += chunk[: n_values // values * n_bytes]
            data += bytes(-len(data) % alignment)
            offset = len(data)
        self.bytes += bytes(-len(self.bytes) % alignment) + data

    def number(self, name, fmt, value, kind):
        self.fields.append((name, len(self.bytes), fmt, kind))
        self.bytes += struct.pack("<" + fmt, value)

    def string(self, name, text):
        data = text.encode()
        self.number(f"{name}-length", "Q", len(data), "length")
        self.bytes += data

    def value(self, name, kind, value):
        if kind == STRING:
            self.string(f"{name}-string", value)
        elif kind == ARRAY:
            element, items = value
            self.number(f"{name}-element", "I", element, "type")
            self.number(f"{name}-count", "Q", len(items), "count")
            for item in items:
                self.value(name, element, item)
        else:
            self.bytes += struct.pack("<" + FORMAT[kind], value)

    def patched(self, offset, fmt, value):
        out = bytearray(self.bytes)
        struct.pack_into("<" + fmt, out, offset, value % (1 << 8 * struct.calcsize(fmt)))
        return bytes(out)


KEYS = [
    ("general.architecture", STRING, "tiny"),
    ("u8", U8, 1), ("i8", I8, -1), ("u16", U16, 2), ("i16", I16, -2), ("u32", U32, 3),
    ("i32", I32, -3), ("f32", F32, 0.5), ("b", BOOL, True), ("u64", U64, 1 << 60),
    ("i64", I64, -4), ("f64", F64, 0.25),
    ("ints", ARRAY, (I32, [1, -2, 3])),
    ("texts", ARRAY, (STRING, ["", "a", "\u00e4"])),
    ("nested", ARRAY, (ARRAY, [(U8, [1, 2]), (BOOL, [True])])),
]
TENSORS = [("a.weight", TYPE_F32, [4, 2]), ("b", TYPE_Q4_0, [32, 1, 2]), ("c", TYPE_I8, [3])]
BAD = {"count": [0, 1, 1 << 31, (1 << 32) - 1, 1 << 63],
       "length": [0, 1, 1 << 31, (1 << 32) - 1, 1 << 63],
       "extent": [0, (1 << 63) - 1, (1 << 42) + 1],
       "offset": [1, 1 << 63],
       "type": [255]}


def shards():
    keys = [("general.architecture", STRING, "tiny")]
    for no, tensors in enumerate(([], TENSORS[:2], TENSORS[2:])):
        split = [("split.no", U16, no), ("split.count", U16, 3),
                 ("split.tensors.count", I32, len(TENSORS))]
        yield bytes(File((keys if no == 0 else []) + split, tensors).bytes)


def nested(depth):
    value = (U8, [])
    for _ in range(depth):
        value = (ARRAY, [value])
    return value


def seeds():
    small = File(KEYS, TENSORS)
    yield "valid", bytes(small.bytes)
    yield "valid-version2", bytes(File(KEYS, TENSORS, version=2).bytes)
    yield "valid-alignment64", bytes(
        File([("general.alignment", U32, 64)], TENSORS, alignment=64).bytes)
    yield "valid-keys-alone", bytes(File(KEYS[:1], []).bytes)
    yield "valid-q2_0", bytes(File([], [("q", TYPE_Q2_0, [128, 2])]).bytes)
    yield "cut", bytes(small.bytes[:-40])
    yield "trailing", bytes(small.bytes) + bytes(64)
    yield "nested-arrays", bytes(File([("n", ARRAY, nested(100))], []).bytes)
    parts = list(shards())
    yield "shards", b"".join(parts)
    yield "shards-reversed", b"".join(parts[::-1])
    yield "shards-missing", parts[0] + parts[2]
    yield "double-key", bytes(File([("k", U8, 1), ("k", U8, 2)], []).bytes)
    yield "double-tensor", bytes(File([], [TENSORS[2], TENSORS[2]]).bytes)
    done = set()
    for name, offset, fmt, kind in small.fields:
        for value in BAD[kind]:
            seed = small.patched(offset, fmt, value)
            label = f"{name}-{value:x}"
            if seed != bytes(small.bytes) and label not in done:
                done.add(label)
                yield label, seed
    yield "html", b"<!DOCTYPE html><html>"
    yield "lfs", b"version https://git-lfs.github.com/spec/v1\n"
    yield "zip", b"PK\x03\x04"
    yield "swapped-magic", b"FUGG\0\0\0\3" + bytes(16)
    yield "version99", b"GGUF" + struct.pack("<IQQ", 99, 0, 0)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    total = 0
    for name, data in seeds():
        (folder / name).write_bytes(data)
        total += len(data)
    print(f"{len(list(folder.iterdir()))} seeds, {total} bytes")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes canonical.txt: what the canonical arithmetic of strata/quant/canonical.h gives.

Independent of the C++ code: exact rational numbers, each rounding to f32 written out. Weights come
from vectors.gguf. Where a type has no min, its integers are the golden values divided by d, so not
even its layout is read here, only where d lies.

Use: tests/golden/quant/make_canonical.py   (needs python3 alone)

A line is: type, number of values, number of the activation row, bits of the result. The weights are
the first values of the type's golden array. Value j of activation row r is (see activation())

    k = (j * 2654435761 + r * 40503) mod 2^32;  x = ((k >> 16) - 32768) / 32768 * 2^((j // 32 + r) % 7 - 3)

except that row 2 is 0 in the values 32..63 and 256..511.
"""
import pathlib
import struct
from fractions import Fraction

HERE = pathlib.Path(__file__).resolve().parent

# type: values and bytes of a block, activation block, values of a term
TYPES = {
    "Q4_0": (32, 18, 32, 32), "Q4_1": (32, 20, 32, 32), "Q5_0": (32, 22, 32, 32),
    "Q5_1": (32, 24, 32, 32), "Q8_0": (32, 34, 32, 32), "IQ4_NL": (32, 18, 32, 32),
    "MXFP4": (32, 17, 32, 32), "NVFP4": (64, 36, 32, 16), "Q1_0": (128, 18, 32, 32),
    "Q2_0": (64, 18, 32, 32), "Q2_K": (256, 84, 256, 256), "Q3_K": (256, 110, 256, 256),
    "Q4_K": (256, 144, 256, 256), "Q5_K": (256, 176, 256, 256), "Q6_K": (256, 210, 256, 256),
    "IQ1_S": (256, 50, 256, 256), "IQ1_M": (256, 56, 256, 256), "IQ2_XXS": (256, 66, 256, 256),
    "IQ2_XS": (256, 74, 256, 256), "IQ2_S": (256, 82, 256, 256), "IQ3_XXS": (256, 98, 256, 256),
    "IQ3_S": (256, 110, 256, 256), "IQ4_XS": (256, 136, 256, 256),
}
D_OFFSET = {"Q2_K": 80, "Q3_K": 108, "Q6_K": 208}
# What the format has beside d, folded into it.
FOLDED = {
    "IQ1_S": Fraction(1, 8), "IQ1_M": Fraction(1, 8), "IQ2_XXS": Fraction(1, 8),
    "IQ2_XS": Fraction(1, 8), "IQ2_S": Fraction(1, 8), "IQ3_XXS": Fraction(1, 4),
}


def round_to_f32(x):
    """A rational number to the nearest f32, ties to even; within the range of f32."""
    if x == 0:
        return Fraction(0)
    a = abs(x)
    e = a.numerator.bit_length() - a.denominator.bit_length()
    while Fraction(2) ** e > a:
        e -= 1
    while Fraction(2) ** (e + 1) <= a:
        e += 1
    unit = Fraction(2) ** (max(e, -126) - 23)
    n = round(a / unit)  # Fraction rounds ties to even
    return n * unit if x > 0 else -n * unit


def fma(a, b, c):
    return round_to_f32(a * b + c)


def bits_of(x):
    return struct.unpack("<I", struct.pack("<f", float(x)))[0]


def f16(data, at):
    return Fraction(struct.unpack_from("<e", data, at)[0])


def read_vectors():
    data = (HERE / "vectors.gguf").read_bytes()
    n_tensors, n_keys = struct.unpack_from("<QQ", data, 8)
    at = 24

    def string():
        nonlocal at
        (n,) = struct.unpack_from("<Q", data, at)
        at += 8 + n
        return data[at - n:at].decode()

    for _ in range(n_keys):
        string()
        at += 4
        string()
    offsets = {}
    for _ in range(n_tensors):
        name = string()
        (dims,) = struct.unpack_from("<I", data, at)
        at += 4 + 8 * dims + 4
        (offsets[name],) = struct.unpack_from("<Q", data, at)
        at += 8
    start = (at + 31) // 32 * 32
    return {name: data[start + offset:] for name, offset in offsets.items()}


def activation(n, r):
    x = []
    for j in range(n):
        k = (j * 2654435761 + r * 40503) % 2**32
        v = Fraction((k >> 16) - 32768, 32768) * Fraction(2) ** ((j // 32 + r) % 7 - 3)
        x.append(Fraction(0) if r == 2 and (32 <= j < 64 or 256 <= j < 512) else v)
    return x


def quantize(x, block):
    q, scales = [], []
    for b in range(0, len(x), block):
        part = x[b:b + block]
        amax = max(abs(v) for v in part)
        if amax < Fraction(1, 2**100):
            scales.append(Fraction(0))
            q += [0] * block
            continue
        scales.append(round_to_f32(amax / 127))
        inverse = round_to_f32(127 / amax)
        q += [max(-127, min(127, round(round_to_f32(v * inverse)))) for v in part]
    return q, scales


def ue4m3(x):
    e, m = (x >> 3) & 15, x & 7
    return Fraction(m, 512) if e == 0 else (1 + Fraction(m, 8)) * Fraction(2) ** (e - 7)


def scale_of(name, block, term):
    """d of a term, powers of two folded in."""
    if name == "MXFP4":
        return Fraction(2) ** (block[0] - 128)
    if name == "NVFP4":
        return ue4m3(block[term]) / 2
    if name == "IQ1_M":
        sc = struct.unpack_from("<4H", block, 48)
        word = struct.pack("<H", sum((s >> 12) << (4 * i) for i, s in enumerate(sc)))
        return f16(word, 0) * FOLDED[name]
    return f16(block, D_OFFSET.get(name, 0)) * FOLDED.get(name, 1)


def parts_with_min(name, block):
    """(d, dmin, scale * code of each value, min of each value) of the types with a min."""
    if name in ("Q4_1", "Q5_1"):
        nibbles = block[4:20] if name == "Q4_1" else block[8:24]
        code = [b & 15 for b in nibbles] + [b >> 4 for b in nibbles]
        if name == "Q5_1":
            (high,) = struct.unpack_from("<I", block, 4)
            code = [c + 16 * (high >> j & 1) for j, c in enumerate(code)]
        return f16(block, 0), -f16(block, 2), code, [1] * 32
    if name == "Q2_K":
        code, mins = [], []
        for j in range(256):
            two = block[16 + 32 * (j // 128) + j % 32] >> (2 * (j % 128 // 32)) & 3
            code.append((block[j // 16] & 15) * two)
            mins.append(block[j // 16] >> 4)
        return f16(block, 80), f16(block, 82), code, mins
    s = block[4:16]
    scale = [v & 63 for v in s[:4]] + [(s[g + 4] & 15) | (s[g - 4] >> 6) << 4 for g in range(4, 8)]
    least = [v & 63 for v in s[4:8]] + [(s[g + 4] >> 4) | (s[g] >> 6) << 4 for g in range(4, 8)]
    code, mins = [], []
    for j in range(256):
        g, l = j // 32, j % 32
        qs = block[(16 if name == "Q4_K" else 48) + 32 * (g // 2) + l]
        c = qs >> 4 if g % 2 else qs & 15
        if name == "Q5_K":
            c += 16 * (block[16 + l] >> g & 1)
        code.append(scale[g] * c)
        mins.append(least[g])
    return f16(block, 0), f16(block, 2), code, mins


def check_parts(d, dmin, code, mins, values):
    for c, m, v in zip(code, mins, values):
        assert round_to_f32(round_to_f32(d * c) - round_to_f32(dmin * m)) == v


def dot(name, blocks, values, n, r):
    block_values, block_bytes, act, term_values = TYPES[name]
    q, scales = quantize(activation(n, r), act)
    terms = []  # per activation block: (isum, d, imin or None, dmin)
    for b in range(n // act):
        row = []
        for j in range(b * act, (b + 1) * act, term_values):
            w = j // block_values
            block = blocks[w * block_bytes:(w + 1) * block_bytes]
            golden = values[j:j + term_values]
            qs = q[j:j + term_values]
            if name in ("Q4_1", "Q5_1", "Q2_K", "Q4_K", "Q5_K"):
                d, dmin, code, mins = parts_with_min(name, block)
                check_parts(d, dmin, code, mins, golden)
                imin = sum(m * x for m, x in zip(mins, qs))
            else:
                d, dmin, imin = scale_of(name, block, j % block_values // term_values), None, None
                code = [v / d for v in golden]
                assert all(c.denominator == 1 for c in code), name
            row.append((sum(c * x for c, x in zip(code, qs)), d, imin, dmin))
        terms.append(row)
    segments = []
    for s in range(8):
        acc = Fraction(0)
        for b in range(s * len(terms) // 8, (s + 1) * len(terms) // 8):
            for isum, d, imin, dmin in terms[b]:
                acc = fma(round_to_f32(Fraction(isum)), round_to_f32(d * scales[b]), acc)
                if imin is not None:
                    acc = fma(-round_to_f32(Fraction(imin)), round_to_f32(dmin * scales[b]), acc)
        segments.append(acc)
    total = segments[0]
    for acc in segments[1:]:
        total = round_to_f32(total + acc)
    return total


def dot_float(a, b):
    lane = [Fraction(0)] * 32
    for i, (u, v) in enumerate(zip(a, b)):
        lane[i % 32] = fma(u, v, lane[i % 32])
    for width in (16, 8, 4, 2, 1):
        for l in range(width):
            lane[l] = round_to_f32(lane[l] + lane[l + width])
    return lane[0]


def main():
    vectors = read_vectors()
    lines = []
    for name, (block_values, _, act, _) in sorted(TYPES.items()):
        values = [Fraction(v) for v in struct.unpack_from("<2048f", vectors[name + ".values"])]
        blocks = vectors[name + ".blocks"]
        step = max(block_values, act)
        for n in sorted({step, 3 * step, 5 * step, 10 * step, 20 * step, 640, 2048}):
            if n > 2048 or n % step != 0:
                continue
            for r in range(3):
                lines.append(f"{name} {n} {r} {bits_of(dot(name, blocks, values, n, r)):08x}")
    values = [Fraction(v) for v in struct.unpack_from("<2048f", vectors["Q4_K.values"])]
    for n in (1, 31, 32, 33, 61, 64, 640, 1021, 2048):
        for r in range(3):
            lines.append(f"F32 {n} {r} {bits_of(dot_float(values[:n], activation(n, r))):08x}")
    (HERE / "canonical.txt").write_text("\n".join(lines) + "\n")


main()

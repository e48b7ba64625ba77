"""Random JSON schemas of the kinds that the strict modes of the large APIs know."""

import random

WORDS = ["red", "green", "blue", "one", "two", "yes", "no", "caf\u00e9", "a b", "\"quoted\""]
PATTERNS = ["^[a-f]{1,4}$", "^\\d{3}-\\d{2}$", "^(left|right)$", "^[A-Z][a-z]{0,5}$"]


def leaf(r):
    kind = r.randrange(9)
    if kind == 0:
        return {"type": "boolean"}
    if kind == 1:
        return {"type": "null"}
    if kind == 2:
        return {"enum": r.sample(WORDS, r.randint(1, 4))}
    if kind == 3:
        low = r.randint(-50, 50)
        return {"type": "integer", "minimum": low, "maximum": low + r.randint(0, 200)}
    if kind == 4:
        low = round(r.uniform(-5, 5), 2)
        return {"type": "number", "minimum": low, "exclusiveMaximum": round(low + r.randint(1, 9), 2)}
    if kind == 5:
        return {"type": "string", "pattern": r.choice(PATTERNS)}
    if kind == 6:
        low = r.randint(0, 3)
        return {"type": "string", "minLength": low, "maxLength": low + r.randint(0, 8)}
    if kind == 7:
        return {"const": r.choice([1, "x", None, True, [1, 2], {"a": 1}])}
    return {"type": ["integer", "null"]}


def schema(r, depth=0):
    kind = r.randrange(10)
    if depth >= 3 or kind < 3:
        return leaf(r)
    if kind < 7:
        names = r.sample(["id", "name", "kind", "value", "z", "a b", "\u00fc", "x-1"], r.randint(1, 4))
        made = {"type": "object", "properties": {n: schema(r, depth + 1) for n in names},
                "required": r.sample(names, r.randint(0, len(names)))}
        if r.random() < 0.8:
            made["additionalProperties"] = False
        return made
    if kind < 9:
        low = r.randint(0, 2)
        return {"type": "array", "items": schema(r, depth + 1), "minItems": low,
                "maxItems": low + r.randint(0, 2)}
    return {"anyOf": [schema(r, depth + 1) for _ in range(r.randint(1, 3))]}


def tree(r):
    """A schema that contains itself."""
    return {"$ref": "#/$defs/node",
            "$defs": {"node": {"type": "object", "additionalProperties": False,
                               "properties": {"value": leaf(r),
                                              "children": {"type": "array", "maxItems": 2,
                                                           "items": {"$ref": "#/$defs/node"}}},
                               "required": ["value"]}}}


def schemas(n, seed=1):
    for i in range(n):
        r = random.Random(seed * 1_000_003 + i)
        yield tree(r) if i % 10 == 9 else schema(r)

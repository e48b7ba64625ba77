#!/usr/bin/env python3
"""Writes the seeds of wire_fuzz and request_fuzz: corpus/wire/ and corpus/request/.

Usage: tests/fuzz/make_front_corpus.py      (from anywhere; overwrites the seeds)
"""

import json
import pathlib
import struct

HERE = pathlib.Path(__file__).resolve().parent / "corpus"


def text(value):
    data = value.encode()
    return struct.pack("<I", len(data)) + data


def ints(values):
    return struct.pack("<I", len(values)) + b"".join(struct.pack("<i", v) for v in values)


def frame(kind, payload, engine=1, request=7):
    return struct.pack("<IHHIQ", len(payload), 6, kind, engine, request) + payload


def write(folder, name, data):
    (HERE / folder).mkdir(parents=True, exist_ok=True)
    (HERE / folder / name).write_bytes(data)


def wire_seeds():
    sampling = struct.pack("<fifffffi", 0.7, 40, 0.9, 0.05, 0.5, -0.5, 1.1, 64)
    sampling += b"\x01" + struct.pack("<Q", 42) + struct.pack("<Iif", 1, 7, -100.0)
    submit = ints([1, 2, 3]) + sampling + struct.pack("<I", 1) + text("\n") + ints([2]) + struct.pack("<i", 16)
    submit += ints([7]) + ints([1]) + text('root ::= "a"') + b"\x01\x01" + text("<think>") + text("</think>")
    submit += struct.pack("<i", 8) + ints([3]) + struct.pack("<i", 2)
    drafts = struct.pack("<Q", 5) + 2 * (struct.pack("<I", 1) + struct.pack("<Q", 3))
    line = text("state") + text("pages") + text("2 x 3 B") + struct.pack("<Q", 6) + text("always") + b"\x00"
    device = text("RAM") + struct.pack("<QQQQq", 9, 1, 6, 6, 0) + struct.pack("<I", 1) + line
    plan = struct.pack("<I", 1) + device + struct.pack("<Q", 5)
    messages = {
        "submit": frame(1, submit),
        "cancel": frame(2, b""),
        "shutdown": frame(3, b"", request=0),
        "progress": frame(64, struct.pack("<iii", 1, 2, 0)),
        "tokens": frame(65, ints([5]) + text("a") + struct.pack("<IfIif", 1, -0.5, 1, 5, -0.5)),
        "finished": frame(66, b"\x00" + struct.pack("<iiii", 3, 1, 0, 0)
                          + struct.pack("<dddd", 1, 2, 3, 0) + drafts
                          + text("")),
        "failed": frame(67, b"\x06" + text("why")),
        "ready": frame(68, struct.pack("<iiii", 512, 511, 4, 4096) + plan, request=0),
        "pulse": frame(69, text("ready") + text("") + struct.pack("<iiiii", 0, 0, 0, 0, 1)
                       + struct.pack("<7Q", 1 << 30, 1 << 20, 8, 2, 7, 9, 0) + drafts
                       + struct.pack("<9Q", 3, 400, *range(7)) + struct.pack("<I", 1) + text("graphs")
                       + struct.pack("<II", 1, 1) + text("off"), request=0),
        "leaving": frame(70, b"\x05" + text("why") + text("copy"), request=0),
    }
    for name, data in messages.items():
        write("wire", name, b"\xff" + data)
    write("wire", "all", b"\x06" + b"".join(messages.values()))


def request_seeds():
    chat = {
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "temperature": 0.5, "top_p": 0.9, "top_k": 4, "min_p": 0.1, "presence_penalty": 1,
        "frequency_penalty": 1, "repetition_penalty": 1.1, "seed": 1, "logit_bias": {"5": -1},
        "stop": ["a", "b"], "max_tokens": 4, "max_completion_tokens": 5, "n": 1, "stream": True,
        "stream_options": {"include_usage": True}, "response_format": {"type": "text"},
        "chat_template_kwargs": {"enable_thinking": True, "x": [1, 2.5, None, "y"]},
        "reasoning_effort": "low", "tools": [], "tool_choice": "none", "modalities": ["text"],
    }
    write("request", "chat", b"\x00" + json.dumps(chat).encode())
    write("request", "completion", b"\x01" + json.dumps({"prompt": "hi", "stop": "x"}).encode())
    write("request", "ids", b"\x01" + json.dumps({"prompt": [[1, 2, 3]], "echo": False}).encode())
    write("request", "tokenize", b"\x02" + json.dumps({"content": "hi", "add_special": True}).encode())
    write("request", "detokenize", b"\x07" + json.dumps({"tokens": [104, 105]}).encode())
    write("request", "deep", b"\x00" + b"[" * 100)
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
              "required": ["a"]}
    function = {"name": "f", "strict": True, "parameters": schema}
    ask = {"messages": [{"role": "user", "content": "a"}]}
    write("request", "tools", b"\x00" + json.dumps({
        **ask, "tools": [{"type": "function", "function": function}], "tool_choice": "required",
        "logprobs": True, "top_logprobs": 2, "n": 2}).encode())
    write("request", "grammar", b"\x00" + json.dumps({
        **ask, "grammar": 'root ::= "a" [b-d]{2,3} | ("e")*', "reasoning_budget": 3}).encode())
    write("request", "message", b"\x03" + json.dumps({
        **ask, "max_tokens": 5, "system": "s", "tools": [{"name": "f", "input_schema": schema}],
        "tool_choice": {"type": "any"}, "thinking": {"type": "enabled", "budget_tokens": 3}}).encode())
    union = {"anyOf": [{"type": "integer", "minimum": 3}, {"$ref": "#/$defs/t"}]}
    write("request", "response", b"\x04" + json.dumps({
        "input": [{"role": "user", "content": "a"},
                  {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                  {"type": "function_call_output", "call_id": "c", "output": "r"}],
        "text": {"format": {"type": "json_schema", "name": "x", "schema": {
            "type": "object", "properties": {"a": union}, "$defs": {"t": {"enum": [1, "x"]}}}}}}).encode())


wire_seeds()
request_seeds()

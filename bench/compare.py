#!/usr/bin/env python3
"""Compares the speed of strata and of another program on the same files, and prints a markdown table.

  bench/compare.py a.gguf b.gguf --peer 'node peer_bench.mjs {file} {threads} {prompt} {gen}' \\
      --peer-folder ../peer --threads 1,2 --prompt 512 --gen 48
  bench/compare.py a.gguf --threads 2 --busy 2      # how much stays beside two spinning processes

A round measures everything once, right after each other: the peer, strata, and (by strata) how fast
memory is read; every other round begins with strata. What counts is the median of the ratios of the
rounds, so a machine whose speed drifts does no harm. Before each measurement the load of the last
minute has to fall below --quiet-load, or --quiet-wait seconds have to pass. The peer prints a line of
JSON: pp and tg, tokens per second of prompt and answer.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import shlex
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Failed(Exception):
    """A measurement that gave no result."""


@dataclasses.dataclass
class Point:
    """One run: tokens per second, and what else the machine did."""

    decode: float
    prompt: float
    load: float  # of the last minute, before it began
    others: float  # processors that anybody else kept busy while it ran
    bandwidth: float | None = None
    share: float | None = None
    bound: float | None = None


@dataclasses.dataclass
class Round:
    strata: Point | None = None
    peer: Point | None = None
    busy_strata: Point | None = None
    busy_peer: Point | None = None


def tell(text):
    print(text, file=sys.stderr, flush=True)


def wait_until_quiet(limit, seconds, load=lambda: os.getloadavg()[0], sleep=time.sleep,
                     clock=time.monotonic):
    """The load when it fell below the limit, or when the time was over."""
    end = clock() + seconds
    while load() >= limit and clock() < end:
        sleep(min(1, max(end - clock(), 0.01)))
    return load()


def busy_seconds():
    """Processor time that the machine has spent on anything, since it started."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


class Spinners:
    """Processes at equal priority that do nothing but use a processor, one pinned to each."""

    CODE = """if True:
        import os, sys
        parent = int(sys.argv[2])
        os.sched_setaffinity(0, {int(sys.argv[1])})
        print(flush=True)
        while os.getppid() == parent:  # they outlive nobody, however it ends
            for _ in range(1_000_000): pass
        """

    def __init__(self, count):
        self.processors = sorted(os.sched_getaffinity(0))
        if count > len(self.processors):
            raise Failed(f"--busy {count}: this process may use {len(self.processors)} processors")
        self.count = count
        self.running = []

    def __enter__(self):
        for processor in self.processors[:self.count]:
            self.running.append(subprocess.Popen(
                [sys.executable, "-S", "-c", self.CODE, str(processor), str(os.getpid())],
                stdout=subprocess.PIPE))
        for process in self.running:
            process.stdout.readline()  # it spins from here on
        return self

    def __exit__(self, *_):
        for process in self.running:
            process.kill()
            process.wait()
            process.stdout.close()
        self.running = []


def run_json(command, folder, timeout_s):
    """The last line of the command's output as JSON, and its share of the machine's work."""
    busy, began, spent = busy_seconds(), time.monotonic(), os.times()
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                                timeout=timeout_s, check=False)
    except FileNotFoundError as error:
        raise Failed(str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{command[0]} took more than {timeout_s} s") from error
    lines = result.stdout.strip().splitlines()
    if result.returncode != 0 or not lines:
        last = (result.stderr.strip().splitlines() or ["no output"])[-1]
        raise Failed(f"{shlex.join(command)}: exit status {result.returncode}: {last}")
    now = os.times()
    own = (now.children_user + now.children_system) - (spent.children_user + spent.children_system)
    others = max(busy_seconds() - busy - own, 0) / max(time.monotonic() - began, 1e-9)
    try:
        return json.loads(lines[-1]), others
    except ValueError as error:
        raise Failed(f"{shlex.join(command)}: its last line is no JSON: {lines[-1][:200]}") from error


def positive(data, key):
    value = data.get(key)
    if not isinstance(value, (int, float)) or value <= 0:
        raise Failed(f"{key} is {value!r}")
    return float(value)


class Bench:
    """The two programs with their options."""

    def __init__(self, options):
        self.options = options
        self.spinners = Spinners(options.busy)

    def strata(self, file, threads, bandwidth=True):
        o = self.options
        command = [o.strata, "bench", file, "--prompt", str(o.prompt), "--gen", str(o.gen),
                   "--threads", str(threads), "--json", *shlex.split(o.strata_options)]
        if not bandwidth and "--no-bandwidth" not in command:
            command.append("--no-bandwidth")
        load = os.getloadavg()[0]
        data, others = run_json(command, None, o.timeout)
        return Point(positive(data, "decode_tokens_per_s"), positive(data, "prompt_tokens_per_s"),
                     load, others, data.get("bandwidth_bytes_per_s"), data.get("decode_share"),
                     data.get("decode_bound_tokens_per_s"))

    def peer(self, file, threads):
        o = self.options
        values = {"file": file, "threads": threads, "prompt": o.prompt, "gen": o.gen}
        command = [word.format(**values) for word in shlex.split(o.peer)]
        load = os.getloadavg()[0]
        data, others = run_json(command, o.peer_folder, o.timeout)
        return Point(positive(data, "tg"), positive(data, "pp"), load, others)

    def round(self, file, threads, number):
        """Idle ones first: the load of a busy run would count against them."""
        todo = ["strata"]
        if self.options.peer:
            todo.insert(number % 2, "peer")
        result = Round()
        for busy in (False, True) if self.options.busy else (False,):
            for who in todo:
                try:
                    point = self.measure(who, file, threads, busy)
                except Failed as error:
                    tell(f"  {who}{' beside others' if busy else ''}: {error}")
                    continue
                setattr(result, ("busy_" if busy else "") + who, point)
                tell(f"  {who:6}{' busy' if busy else '     '} decode {point.decode:8.2f}  prompt "
                     f"{point.prompt:8.2f} tokens/s  load {point.load:.2f}  others {point.others:.2f}")
        return result

    def measure(self, who, file, threads, busy):
        if busy:
            with self.spinners:
                if who == "peer":
                    return self.peer(file, threads)
                return self.strata(file, threads, bandwidth=False)
        wait_until_quiet(self.options.quiet_load, self.options.quiet_wait)
        return self.peer(file, threads) if who == "peer" else self.strata(file, threads)


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def quotients(rounds, above, below):
    """above(round) / below(round) of the rounds that have both."""
    pairs = [(above(r), below(r)) for r in rounds]
    return [a / b for a, b in pairs if a is not None and b is not None and b > 0]


def part(who, what):
    def get(one):
        point = getattr(one, who)
        return None if point is None else getattr(point, what)
    return get


def written(value, form, suffix=""):
    return "" if value is None else format(value, form) + suffix


def spread(ratios):
    """Median, least and greatest."""
    if not ratios:
        return ""
    return f"**{statistics.median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})"


def kept(rounds, who):
    ratio = median(quotients(rounds, part("busy_" + who, "decode"), part(who, "decode")))
    return written(None if ratio is None else 100 * ratio, ".0f", " %")


def columns(options):
    """(title, function of the rounds) of the table, without file and threads."""
    def of(who, what, form=".2f", scale=1.0, suffix=""):
        def cell(rounds):
            value = median(part(who, what)(r) for r in rounds)
            return written(None if value is None else value * scale, form, suffix)
        return cell

    def ratio(what):
        return lambda rounds: spread(quotients(rounds, part("strata", what), part("peer", what)))

    chosen = []
    for what in ("decode", "prompt"):
        if options.peer:
            chosen.append((f"{what} peer", of("peer", what)))
        chosen.append((f"{what} strata", of("strata", what)))
        if options.peer:
            chosen.append((f"{what} ratio", ratio(what)))
    chosen.append(("reads GB/s", of("strata", "bandwidth", ".1f", 1e-9)))
    chosen.append(("decode share of it", of("strata", "share", ".0f", 100, " %")))
    if options.busy:
        if options.peer:
            chosen.append(("busy: peer keeps", lambda rounds: kept(rounds, "peer")))
        chosen.append(("busy: strata keeps", lambda rounds: kept(rounds, "strata")))
    chosen.append(("rounds", lambda rounds: str(sum(r.strata is not None for r in rounds))))
    idle = lambda r: [p for p in (r.strata, r.peer) if p is not None]
    chosen.append(("others", lambda rounds: written(
        max((p.others for r in rounds for p in idle(r)), default=None), ".2f")))
    return chosen


def table(results, options):
    chosen = columns(options)
    titles = ["file", "threads", *(title for title, _ in chosen)]
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    for (file, threads), rounds in results.items():
        cells = [pathlib.Path(file).name, str(threads), *(cell(rounds) for _, cell in chosen)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def report(results, options, command, when):
    text = (f"{when:%Y-%m-%d}, {options.rounds} rounds, prompt of {options.prompt}, {options.gen} "
            f"tokens of answer; tokens/s, medians; ratios: median of the rounds' own, with the least "
            f"and the greatest; others: the most processors that anybody else kept busy during a run:\n\n"
            f"```\n{command}\n```\n\n")
    return text + table(results, options)


def thread_counts(text):
    counts = [int(word) for word in text.split(",")]
    if any(count < 1 for count in counts):
        raise ValueError(text)
    return counts


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("files", nargs="+", metavar="FILE")
    p.add_argument("--threads", type=thread_counts, default=[1, 2], metavar="N,N", help="default 1,2")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--prompt", type=int, default=512, help="tokens")
    p.add_argument("--gen", type=int, default=48, help="tokens")
    p.add_argument("--strata", default=str(ROOT / "build/release/bin/strata"), metavar="PROGRAM")
    p.add_argument("--strata-options", default="", metavar="WORDS", help="more options of strata bench")
    p.add_argument("--peer", default="", metavar="COMMAND",
                   help="with {file} {threads} {prompt} {gen}; without it strata alone is measured")
    p.add_argument("--peer-folder", default=None, metavar="FOLDER", help="where the peer is started")
    p.add_argument("--busy", type=int, default=0, metavar="N",
                   help="measure beside N spinning processes as well")
    p.add_argument("--quiet-load", type=float, default=0.5, metavar="X")
    p.add_argument("--quiet-wait", type=float, default=60, metavar="S", help="at most so long")
    p.add_argument("--timeout", type=float, default=1800, metavar="S", help="of a single run")
    p.add_argument("--json", default="", metavar="FILE", help="all measurements, too")
    options = p.parse_args(arguments)
    if options.rounds < 1 or options.prompt < 1 or options.gen < 2 or options.busy < 0:
        p.error("--rounds and --prompt are at least 1, --gen at least 2, --busy at least 0")
    for file in options.files:
        if not os.path.exists(file):
            p.error(f"there is no {file}")
    options.files = [os.path.abspath(file) for file in options.files]
    return options


def main(arguments):
    options = parse(arguments)
    # As an exception, so that what was started is ended.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    results = {(file, threads): [] for file in options.files for threads in options.threads}
    try:
        bench = Bench(options)
        for number in range(options.rounds):
            for (file, threads), rounds in results.items():
                tell(f"round {number + 1} of {options.rounds}: {pathlib.Path(file).name}, "
                     f"{threads} threads")
                rounds.append(bench.round(file, threads, number))
                if options.json:
                    save(options.json, results)
    except KeyboardInterrupt:
        tell("interrupted; what there is:")
    except Failed as error:
        tell(f"compare: {error}")
        return 1
    print(report(results, options, shlex.join([pathlib.Path(sys.argv[0]).name, *arguments]),
                 datetime.date.today()))
    return 0 if all(any(r.strata for r in rounds) for rounds in results.values()) else 1


def save(path, results):
    """After each round, so that nothing is lost."""
    data = [{"file": file, "threads": threads, "rounds": [dataclasses.asdict(r) for r in rounds]}
            for (file, threads), rounds in results.items()]
    pathlib.Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Is what measure_latency and race_finalists say true? Each proof prints a Markdown table.

    taskset -c 0,1 .venv/bin/python benchmarks/studies/measurement.py clock
    ... measurement.py same [--foreign] [--engine cpu-pytorch-fp32] [--keep FILE]
    ... measurement.py estimators FILE ...
    ... measurement.py planted --percent 5 [--width 0.05]
    ... measurement.py race [--foreign]
    ... measurement.py twins [--engine cpu-openvino-int8-nncf-512]
    ... measurement.py minutes [--engines A B] [--baseline cpu-pytorch-fp32]
    ... measurement.py bursts --seconds 600 & snakemake …
    ... measurement.py runs earlier/summary.json later/summary.json

On a machine with nothing else to do. `same` and `twins` take an engine that the default run has
built, and load it anew for each comparison. docs/results/measurement.md says what is shown.
"""

import argparse
import hashlib
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from tightrope.decide.finalists import Finalists
from tightrope.decide.race import Race as RaceEntry
from tightrope.decide.race import race_entries, ratio_between
from tightrope.decide.result import DISTURBED, LatencyRow
from tightrope.engines.load import load_engine
from tightrope.inputs.encode import timing_batches
from tightrope.jobs.child import Limits
from tightrope.machine.cores import physical_cores, pinned_processors
from tightrope.machine.host import describe_host
from tightrope.machine.interference import QuietMachine
from tightrope.measure.latency import compare_loads
from tightrope.measure.race_rounds import Race, RaceAtShape
from tightrope.measure.timed_engine import TimedEngine
from tightrope.plan.config_checks import checked
from tightrope.records.latency import LatencyRecord, TimedShape
from tightrope.records.race import Heat, RacedShape, RaceRecord
from tightrope.records.record import RACE
from tightrope.statistics import trimmed_mean
from tightrope.summary.results import latency_entry

MODEL = Path("artifacts/minilm-docstrings")
SHAPE = {"batch": 1, "sequence": 64}
SHAPES = [SHAPE, {"batch": 16, "sequence": 128}]
LIMITS = Limits(memory_bytes=8e9, seconds=3600)
DATA = bytes(16 << 10)
# how much more work each planted engine does than the best, and from where on it is a wrong choice
PLANTED = {"best": 0.0, "equal": 0.0, "slower_3": 0.03, "slower_5": 0.05, "slower_10": 0.10}
WRONG = 0.0301
WORK = 400  # pieces of 16 KiB that each thread of the best hashes in a call
FEWEST = 7  # pairs that an interval is made of
# half of the time busy while its parent lives, in turns that are no multiple of a block
HALF_BUSY = """
import os, time
parent = os.getppid()
while os.getppid() == parent:
    end = time.perf_counter() + 0.37
    while time.perf_counter() < end:
        pass
    time.sleep(0.37)
"""


def busy_wait(seconds: float) -> None:
    """Come back when so much time is over."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def hash_blocks(count: int) -> None:
    """A fixed amount of work on one core: `count` times the SHA-256 of 16 KiB."""
    for _ in range(count):
        hashlib.sha256(DATA).digest()


def hash_in_threads(threads: int) -> Callable[[int], Any]:
    """`hash_blocks` in so many threads at once, as an engine computes an operator."""
    pool = ThreadPoolExecutor(threads)
    return lambda count: list(pool.map(hash_blocks, [count] * threads))


def plan(section: str = "latency", **changes: Any) -> dict[str, Any]:
    """A section of the default configuration, with changes."""
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    return checked(config)[section] | changes


class Compared(NamedTuple):
    """The summary's latency row of one comparison, its seconds, and `log_ratios` of its pairs."""

    row: LatencyRow
    seconds: float
    logs: list[float]


def compared(
    loads: list[Callable[[], Any]], inputs: list[Any], threads: int, settings: dict[str, Any]
) -> Compared:
    """Compare fresh workers of two engines."""
    processors = pinned_processors(threads)
    engines = {
        role: TimedEngine(load, [one], processors)
        for role, load, one in zip(("", "baseline "), loads, inputs, strict=True)
    }
    machine = QuietMachine(processors, settings["quiet_seconds"], sys.stderr)
    shape = TimedShape(**SHAPE)
    compare_loads(engines, [shape], settings, threads, LIMITS, machine)
    identity = {"model": "m", "variant": "v", "host": {}, "libraries": {}}
    facts = {"threads": threads, "plan": settings, "processors": processors}
    row = latency_entry(LatencyRecord(**identity, **facts, shapes=[shape]), 0)
    return Compared(row, shape.seconds, log_ratios(shape))


def log_ratios(shape: TimedShape) -> list[float]:
    """The logarithm of the ratio of each undisturbed pair of blocks."""
    measured = (shape.blocks_s, shape.baseline_blocks_s or [])
    both = ([statistics.median(block) for block in blocks] for blocks in measured)
    logs = [math.log(theirs / own) for own, theirs in zip(*both, strict=True)]
    return [logs[index] for index in shape.undisturbed()]


def report(name: str, found: list[Compared], truth: float) -> None:
    """Print what came out of many comparisons whose true speed-up is `truth`."""
    verdicts = Counter(one.row.speedup.verdict for one in found)
    count, found = len(found), [one for one in found if one.row.disturbed is None]
    rows, seconds = [one.row for one in found], [one.seconds for one in found]
    held = sum(row.speedup.low <= truth <= row.speedup.high for row in rows)
    widths = [(row.speedup.high - row.speedup.low) / row.speedup.ratio for row in rows]
    cells = [
        name,
        count,
        *(verdicts[word] for word in ("faster", "slower", "tie", DISTURBED)),
        held,
        f"{statistics.median(row.speedup.ratio for row in rows):.4f}",
        f"{statistics.median(widths):.3f}",
        sum(row.stop == "width" for row in rows),
        sum(row.disturbed_pairs for row in rows),
        f"{statistics.median(seconds):.1f}",
        f"{max(seconds):.1f}",
    ]
    head = (
        "proof | comparisons | faster | slower | tie | disturbed | truth in the interval | "
        "median ratio | median width | stopped by width | disturbed pairs | median s | most s"
    )
    print(f"| {head} |\n|{' --- |' * len(cells)}")
    print(f"| {' | '.join(map(str, cells))} |")


def clock(_: argparse.Namespace) -> None:
    """Engines that are busy for a known time: what is measured, and what a call costs more."""
    print("| busy | measured, median | off by |\n| ---: | ---: | ---: |")
    for seconds in (5e-6, 1e-3, 50e-3):
        timed = TimedEngine(lambda: (busy_wait, {}), [seconds], pinned_processors(1))
        quiet, shape = QuietMachine(pinned_processors(1), 0.0, sys.stderr), TimedShape(batch=1)
        compare_loads({"": timed}, [shape], plan(), 1, LIMITS, quiet)
        median = statistics.median(sample for block in shape.blocks_s for sample in block)
        off = median - seconds
        words = f"{off * 1e6:.2f} µs ({100 * off / seconds:.2f} %)"
        print(f"| {seconds * 1e6:g} µs | {median * 1e6:.2f} µs | {words} |", flush=True)


def same(options: argparse.Namespace) -> None:
    """An engine against itself: all but one in twenty should be a tie."""
    threads = physical_cores()
    files = (MODEL / "checkpoint/checkpoint.json", MODEL / "splits/timing.json")
    (batch,) = timing_batches(*files, [SHAPE], max_sequence=128)
    engine = MODEL / f"engines/{options.engine}/engine.json"
    load = partial(load_engine, engine, threads=threads)
    with foreign_load(pinned_processors(threads)[0]) if options.foreign else ExitStack():
        rows = [
            compared([load, load], [batch, batch], threads, plan()) for _ in range(options.count)
        ]
    if options.keep:
        options.keep.write_text(json.dumps([one.logs for one in rows]))
    report(f"same, {options.engine}{', foreign load' * options.foreign}", rows, 1.0)


def minutes(options: argparse.Namespace) -> None:
    """What differs from minute to minute: the same comparisons over and over, loaded anew.

    `followed` is how much of the spread of the two engines' own times the ratio has, beyond what
    the pairs of one comparison show: see `records.latency.DRIFT_SHARE`.
    """
    threads = physical_cores()
    files = (MODEL / "checkpoint/checkpoint.json", MODEL / "splits/timing.json")
    (batch,) = timing_batches(*files, [SHAPE], max_sequence=128)

    def loaded(name: str) -> Callable[[], Any]:
        return partial(load_engine, MODEL / f"engines/{name}/engine.json", threads=threads)

    found: dict[str, list[LatencyRow]] = {name: [] for name in options.engines}
    for _ in range(options.count):
        for name, rows in found.items():
            loads = [loaded(name), loaded(options.baseline)]
            rows.append(compared(loads, [batch, batch], threads, plan()).row)
    head = "engine | comparisons | time of a call | ratio | in one comparison | followed"
    print(f"| {head} |\n|{' --- |' * 6}")
    for name, rows in found.items():
        known = [row for row in rows if row.speedup.ratio and row.p50_s]
        ratios = [math.log(row.speedup.ratio) for row in known]
        own = [math.log(row.p50_s) for row in known]
        theirs = [one + ratio for one, ratio in zip(own, ratios, strict=True)]
        half = [math.log(row.speedup.high / row.speedup.low) / 2 for row in known]
        within = math.sqrt(statistics.fmean((one / 1.96) ** 2 for one in half))
        times = (statistics.stdev(own) + statistics.stdev(theirs)) / 2
        spread = statistics.stdev(ratios)
        followed = math.sqrt(max(0.0, spread**2 - within**2)) / times
        cells = " | ".join(f"{100 * one:.1f} %" for one in (times, spread, within))
        print(f"| {name} | {len(known)} | {cells} | {followed:.2f} |")


def bursts(options: argparse.Namespace) -> None:
    """Keep one processor of the engines busy in random bursts: a second on average, as the gaps."""
    os.sched_setaffinity(0, pinned_processors(physical_cores())[:1])
    draw, end = random.Random(0), time.monotonic() + options.seconds
    while time.monotonic() < end:
        busy_wait(draw.expovariate(1.0))
        time.sleep(draw.expovariate(1.0))


def estimators(options: argparse.Namespace) -> None:
    """How often intervals over the pairs that `same --keep` has kept hold the truth, which is 1.

    What the estimates spread beyond their intervals (half of one is about 2.1 standard errors) is
    what differs from load to load.
    """
    head = "pairs of | estimator | comparisons | truth in the interval | median width | "
    print(f"| {head}spread of the estimates | of which between loads |\n|{' --- |' * 7}")
    for file in options.files:
        kept = [logs for logs in json.loads(file.read_text()) if len(logs) >= FEWEST]
        for name, estimate in ESTIMATORS.items():
            ends = [estimate(logs) for logs in kept]
            held = sum(low <= 0 <= high for low, high in ends)
            width = statistics.median(high - low for low, high in ends)
            spread = statistics.stdev((low + high) / 2 for low, high in ends)
            within = statistics.fmean(((high - low) / 2 / 2.1) ** 2 for low, high in ends)
            loads = math.sqrt(max(0.0, spread**2 - within))
            figures = " | ".join(f"{100 * one:.2f} %" for one in (width, spread, loads))
            print(f"| {file.stem} | {name} | {len(kept)} | {held} | {figures} |")


def bootstrapped_mean(logs: list[float]) -> tuple[float, float]:
    """The mean with a symmetric bootstrap interval, expanded for few pairs."""
    draw, count, mean = random.Random(0), len(logs), statistics.fmean(logs)
    off = sorted(abs(statistics.fmean(draw.choices(logs, k=count)) - mean) for _ in range(2000))
    wider = math.sqrt(count / (count - 1)) * stats.t.ppf(0.975, count - 1) / stats.norm.ppf(0.975)
    half = wider * off[1899]
    return mean - half, mean + half


def signed_ranks(logs: list[float]) -> tuple[float, float]:
    """The interval of the Hodges-Lehmann estimate: order statistics of the Walsh averages."""
    walsh = sorted((a + b) / 2 for place, a in enumerate(logs) for b in logs[place:])
    count = len(logs)
    middle, spread = count * (count + 1) / 4, math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    cut = max(0, int(middle - stats.norm.ppf(0.975) * spread))
    return walsh[cut], walsh[-1 - cut]


def order_statistics(logs: list[float]) -> tuple[float, float]:
    """The interval of the median: the binomial distribution's order statistics."""
    ordered, cut = sorted(logs), int(stats.binom.ppf(0.025, len(logs), 0.5))
    return ordered[max(0, cut - 1)], ordered[-max(1, cut)]


def race(options: argparse.Namespace) -> None:
    """Engines of which one is the best, one equal to it, and others slower by a known share."""
    threads = physical_cores()
    settings = plan(quiet_seconds=options.seconds)
    decision = plan("decision", seconds=options.seconds)
    wrong = disturbed = misjudged = put_out = slowest = 0
    with foreign_load(pinned_processors(threads)[0]) if options.foreign else ExitStack():
        for repetition in range(options.first, options.first + options.count):
            began = time.monotonic()
            entry = raced(repetition, threads, settings, decision)
            slowest = max(slowest, time.monotonic() - began)
            extra = PLANTED.get(entry.variant, 0)
            wrong += extra > WRONG
            disturbed += entry.variant is None
            pair = ratio_between(entry, "best", "equal")
            misjudged += pair is not None and pair.verdict != "tie"
            put_out += entry.out.get("best") == "equal" or entry.out.get("equal") == "best"
            print(entry.variant, entry.stop, entry.rounds, pair, file=sys.stderr)
    head = "races | recommended more than 3 % slower | disturbed | equal pair not a tie | "
    print(f"| load | {head}equal one put out | longest s |\n|{' --- |' * 7}")
    load = "one core half taken" if options.foreign else "quiet"
    cells = (load, options.count, wrong, disturbed, misjudged, put_out, f"{slowest:.0f}")
    print(f"| {' | '.join(map(str, cells))} |")


def raced(
    repetition: int, threads: int, settings: dict[str, Any], decision: dict[str, Any]
) -> RaceEntry:
    """The entry of the summary of one race of the planted engines, in an order of its own."""
    processors = pinned_processors(threads)
    names = random.Random(repetition).sample(sorted(PLANTED), len(PLANTED))
    engines = {
        name: TimedEngine(
            lambda: (hash_in_threads(threads), {}), [round(WORK * (1 + PLANTED[name]))], processors
        )
        for name in names
    }
    return race_of(engines, threads, settings, decision)


def race_of(
    engines: dict[str, TimedEngine],
    threads: int,
    settings: dict[str, Any],
    decision: dict[str, Any],
) -> RaceEntry:
    """The entry of the summary of one race of these engines at one shape."""
    names, processors = list(engines), pinned_processors(threads)
    shape = RacedShape(**SHAPE)
    within = decision["equal_within"]
    here = RaceAtShape(0, shape, Finalists(names, []), within, settings, threads)
    machine = QuietMachine(processors, settings["quiet_seconds"], sys.stderr)
    options = {"seconds": decision["seconds"], "machine": machine}
    Race(engines, [here], settings, limits=LIMITS, **options).run()
    record = RaceRecord(
        **{"model": "m", "variant": RACE, "device": "cpu", "host": describe_host()},
        **{"libraries": {}, "threads": threads, "plan": settings, "decision": decision},
        **{"processors": processors, "engines_sha256": {}, "heats": [Heat(shapes=[shape])]},
    )
    # the slower, the smaller: the tie-break by size prefers the worst of those not told apart
    slowest_first = sorted(names, key=lambda name: -PLANTED.get(name, 0.0))
    sizes = {name: size for size, name in enumerate(slowest_first)}
    known = {("m", name): size for name, size in sizes.items()}
    (entry,) = race_entries([record], known, accept_disturbed=False).values()
    return entry


def twins(options: argparse.Namespace) -> None:
    """An engine raced with itself, which should be put out by itself in at most one of twenty."""
    threads = physical_cores()
    files = (MODEL / "checkpoint/checkpoint.json", MODEL / "splits/timing.json")
    batches = timing_batches(*files, SHAPES, max_sequence=128)
    manifest = MODEL / f"engines/{options.engine}/engine.json"
    load = partial(load_engine, manifest, threads=threads)
    processors = pinned_processors(threads)
    settings, decision = plan(), plan("decision", seconds=options.seconds)
    found: dict[int, list[RaceEntry]] = {place: [] for place in range(len(batches))}
    for _ in range(options.count):
        for place, batch in enumerate(batches):
            engines = {name: TimedEngine(load, [batch], processors) for name in ("one", "other")}
            found[place].append(race_of(engines, threads, settings, decision))
    print("| shape | races | one put out | not a tie | ratio, spread | rounds | disturbed |")
    print(f"|{' --- |' * 7}")
    for place, entries in found.items():
        pairs = [ratio_between(entry, "one", "other") for entry in entries]
        known = [pair for pair in pairs if pair is not None]
        spread = statistics.stdev(math.log(pair.ratio) for pair in known)
        cells = (
            " × ".join(str(one) for one in SHAPES[place].values()),  # noqa: RUF001
            len(entries),
            sum(bool(entry.out) for entry in entries),
            sum(pair.verdict != "tie" for pair in known),
            f"{100 * spread:.1f} %",
            f"{statistics.median(entry.rounds for entry in entries):.0f}",
            sum(entry.variant is None for entry in entries),
        )
        print(f"| {' | '.join(map(str, cells))} |")


def planted(options: argparse.Namespace) -> None:
    """An engine that does so many percent less work than its baseline."""
    fewer, more = 2000, 2000 + 20 * options.percent
    loads = [lambda: (hash_blocks, {})] * 2
    settings = plan(width=options.width)
    rows = [compared(loads, [fewer // 10, more // 10], 1, settings) for _ in range(options.count)]
    report(f"planted +{options.percent} %, width {options.width}", rows, more / fewer)


def runs(options: argparse.Namespace) -> None:
    """How the verdicts and speed-ups of two whole runs differ."""
    first, second = (
        {
            (result["variant"], row["shape"]["batch"], row["shape"]["sequence"]): row["speedup"]
            for result in json.loads(path.read_text())["results"]
            for row in result["latency"]
            if row["speedup"] and row["speedup"]["ratio"]
        }
        for path in (options.earlier, options.later)
    )
    both = [(first[key], second[key]) for key in first.keys() & second.keys()]
    moves = [{one["verdict"], other["verdict"]} for one, other in both]
    changes = sorted(abs(math.log(other["ratio"] / one["ratio"])) for one, other in both)
    apart = sum(one["low"] > other["high"] or other["low"] > one["high"] for one, other in both)
    print("| speed-ups in both | flips | to or from tie | median change | most | intervals apart |")
    print(f"|{' --- |' * 6}")
    cells = [
        len(both),
        moves.count({"faster", "slower"}),
        sum(len(move) == 2 and "tie" in move for move in moves),
        *(f"{100 * change:.1f} %" for change in (statistics.median(changes), changes[-1])),
        apart,
    ]
    print(f"| {' | '.join(map(str, cells))} |")


@contextmanager
def foreign_load(processor: int) -> Any:
    """Another program that keeps `processor` busy for half of the time."""
    process = subprocess.Popen([sys.executable, "-c", HALF_BUSY])
    os.sched_setaffinity(process.pid, {processor})
    try:
        yield
    finally:
        process.kill()
        process.wait()


ESTIMATORS = {
    "mean, bootstrap": bootstrapped_mean,
    "trimmed mean, Student's t": lambda logs: trimmed_mean(logs)[1:],
    "Hodges-Lehmann, signed ranks": signed_ranks,
    "median, order statistics": order_statistics,
}


def main() -> None:
    """Run the proof that is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    proofs = parser.add_subparsers(required=True)
    proofs.add_parser("clock").set_defaults(proof=clock)
    equal = proofs.add_parser("same")
    equal.add_argument("--foreign", action="store_true")
    equal.add_argument("--engine", default="cpu-onnxruntime-fp32")
    equal.set_defaults(proof=same)
    different = proofs.add_parser("planted")
    different.add_argument("--percent", type=int, default=5)
    different.add_argument("--width", type=float, default=plan()["width"])
    different.set_defaults(proof=planted)
    kept = proofs.add_parser("estimators")
    kept.add_argument("files", type=Path, nargs="+")
    kept.set_defaults(proof=estimators)
    finals = proofs.add_parser("race")
    finals.add_argument("--foreign", action="store_true")
    finals.add_argument("--seconds", type=float, default=6.0)
    finals.add_argument("--first", type=int, default=0)
    finals.set_defaults(proof=race)
    itself = proofs.add_parser("twins")
    itself.add_argument("--engine", default="cpu-openvino-int8-nncf-512")
    itself.add_argument("--seconds", type=float, default=15.0)
    itself.set_defaults(proof=twins)
    again = proofs.add_parser("minutes")
    again.add_argument("--engines", nargs="+", default=["cpu-onnxruntime-fp32"])
    again.add_argument("--baseline", default="cpu-pytorch-fp32")
    again.set_defaults(proof=minutes)
    beside = proofs.add_parser("bursts")
    beside.add_argument("--seconds", type=float, default=600.0)
    beside.set_defaults(proof=bursts)
    repeated = proofs.add_parser("runs")
    repeated.add_argument("earlier", type=Path)
    repeated.add_argument("later", type=Path)
    repeated.set_defaults(proof=runs)
    equal.add_argument("--keep", type=Path)
    for one in (equal, different, finals, itself, again):
        one.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    options.proof(options)


if __name__ == "__main__":
    main()

"""Verify this bundle on this machine: its files, its answers and its latency.

Exit code 0: files and answers are those that were measured. 1: they are not. With --latency, 2
where a latency is not in the interval that was measured.
"""

import argparse
import hashlib
import json
import sys
import time
from importlib import metadata
from pathlib import Path
from statistics import median

from bundled import machine
from bundled.machine import Refused

FOLDER = Path(__file__).resolve().parent
TIE = 0.01  # of logits: such a margin may turn with the rounding of another processor
WARMUP_S, BLOCKS, BLOCK_S, MOST_S = 0.5, 20, 0.1, 10


def verify_files():
    """Compare every file with SHA256SUMS."""
    sums = (FOLDER / "SHA256SUMS").read_text().splitlines()
    wrong = []
    for line in sums:
        digest, _, name = line.partition("  ")
        try:
            if hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() != digest:
                wrong.append(f"{name} has other bytes")
        except OSError as error:
            wrong.append(f"{name}: {error.strerror}")
    if wrong or not sums:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise Refused(f"{', '.join(wrong[:3]) or 'SHA256SUMS is empty'}{more}; unpack it again")
    print(f"files      {len(sums)}, as they were packed")


def other_versions():
    """Return the installed packages whose version is not that of requirements.txt, in words."""
    found = []
    for line in (FOLDER / "requirements.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        try:
            here = metadata.version(name).partition("+")[0]
        except metadata.PackageNotFoundError:
            raise Refused(f"{name} is missing: pip install -r requirements.txt") from None
        if here != version:
            found.append(f"{name} {here}, measured with {version}")
    return found


def verify_answers(run, batches, facts):
    """Compare the predictions for the sample with those on record."""
    from predict import logits_of

    sample = json.loads((FOLDER / "sample/sample.json").read_text())
    if not sample:
        print("answers    none on record: the data has no labels")
        return []
    inputs = [one["text"] if "text" in one else FOLDER / one["image"] for one in sample]
    predicted = logits_of(run, batches, inputs, len(facts["labels"])).argmax(axis=1).tolist()
    pairs = list(zip(sample, predicted, strict=True))
    other = [(one, here) for one, here in pairs if one["prediction"] != here]
    right = sum(one["label"] == here for one, here in pairs)
    print(f"answers    {len(pairs) - len(other)} of {len(pairs)} as on record, {right} right")
    if clear := [(one, here) for one, here in other if one["margin"] >= TIE]:
        (one, here), labels = clear[0], facts["labels"]
        raise Refused(
            f"{len(clear)} of {len(pairs)} answers changed, such as example {one['index']}: "
            f"{labels[here]!r} in place of {labels[one['prediction']]!r}"
        )
    return inputs


def timing_inputs(shape, batches, inputs, facts):
    """Return the inputs of that shape, full of the sample's tokens or images."""
    import numpy as np

    rows = [batch for start in inputs[:64] for _, batch in batches([start])]
    size = shape["batch"]
    if facts["image"]:
        zeros = np.zeros((1, 3, shape["height"], shape["width"]), np.float32)
        pixels = np.concatenate([row["pixel_values"] for row in rows] or [zeros])
        return {"pixel_values": pixels[np.arange(size) % len(pixels)]}
    real = shape.get("tokens", shape["sequence"])
    ids = np.concatenate([row["input_ids"][0] for row in rows] or [np.ones(1, np.int64)])
    padding = ((0, 0), (0, shape["sequence"] - real))
    ids = np.pad(np.resize(ids, (size, real)), padding)
    return {"input_ids": ids, "attention_mask": np.pad(np.ones((size, real), np.int64), padding)}


def seconds_per_call(run, inputs):
    """Return the median over blocks of calls of their median seconds."""
    began, calls = time.perf_counter(), 0
    while calls < 3 or time.perf_counter() - began < WARMUP_S:
        run(inputs)
        calls += 1
    blocks, began = [], time.perf_counter()
    while len(blocks) < BLOCKS and (len(blocks) < 3 or time.perf_counter() - began < MOST_S):
        times, block = [], time.perf_counter()
        while not times or time.perf_counter() - block < BLOCK_S:
            call = time.perf_counter()
            run(inputs)
            times.append(time.perf_counter() - call)
        blocks.append(median(times))
    return median(blocks)


def other_machine(facts):
    """Return in words how this machine differs from the one that was measured on."""
    host, fields = facts["host"], machine.cpu_fields()
    name = machine.cpu_name(fields)
    found = [f"another CPU: {name}, measured on {host['cpu']}"] if name != host["cpu"] else []
    if lacks := [one for one in host["isa"] if one not in machine.instructions(fields)]:
        found.append(f"another ISA: without {', '.join(lacks)}")
    if machine.cpus() < facts["threads"]:
        found.append(f"{machine.cpus():g} processors for {facts['threads']} threads")
    return found


def other_speed(facts):
    """Return in words whether a fixed workload takes as long as when the engine was measured."""
    stated, processors = facts["workload_s"], facts["processors"]
    if stated is None or processors > machine.cpus():
        return []
    times = machine.workload_seconds(processors) / stated
    if 1 / machine.CHANGED <= times <= machine.CHANGED:
        return []
    return [f"this machine takes {times:.2f} times as long for a fixed workload (SHA-256)"]


def verify_latency(run, batches, inputs, facts, known):
    """Print each latency beside its interval; return whether all lie in theirs."""
    within, causes = True, []
    for stated in facts["latency"]:
        watch = machine.Watch()
        inside = timing_inputs(stated["shape"], batches, inputs, facts)
        here, low, high = seconds_per_call(run, inside), stated["low_s"], stated["high_s"]
        kept = low <= here <= high
        word = "in" if kept else "faster than" if here < low else "slower than"
        print(
            f"latency    {stated['name']}: {1e3 * here:.3g} ms, {word} the {1e3 * low:.3g} to "
            f"{1e3 * high:.3g} ms expected after the measurement"
        )
        causes += [] if kept else watch.causes()
        within = within and kept
    if not within:
        causes = dict.fromkeys([*known, *other_machine(facts), *other_speed(facts), *causes])
        print(f"why        {'; '.join(causes) or 'no cause was found'}")
    return within


def verify():
    """Verify all; return whether the latencies lie in their intervals."""
    verify_files()
    facts = machine.read_facts(FOLDER)
    known = other_versions()
    from bundled.engine import load
    from bundled.request import load_request

    began = time.perf_counter()
    run, batches = load(FOLDER / "engine", facts["threads"]), load_request(FOLDER, facts)
    print(f"loaded     in {time.perf_counter() - began:.2f} s")
    inputs = verify_answers(run, batches, facts)
    return verify_latency(run, batches, inputs, facts, known)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", action="store_true", help="exit with 2 for another latency")
    words = parser.parse_args()
    try:
        within = verify()
    except (OSError, ValueError, KeyError) as error:
        print(f"refused    {error}", file=sys.stderr)
        sys.exit(1)
    sys.exit(2 if words.latency and not within else 0)

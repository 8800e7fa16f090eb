"""What the engines that `cpu.py` times answer, and what other tools' artifacts answer beside them.

    .venv/bin/python benchmarks/studies/cpu_accuracy.py artifacts/minilm-docstrings --peers my/peers

Every engine and artifact predicts the whole evaluation split, the same texts in the same batches.
Prints a Markdown table: accuracy; against PyTorch fp32 the change in points with its 95 % interval,
the predictions that changed and McNemar's p; and the same change against the fastest peer, or the
one of --rival.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from cpu import BASELINE, LIMITS, Load, candidates
from tightrope.artifacts.manifest import classes_of
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import supervised
from tightrope.machine.cores import physical_cores
from tightrope.measure.accuracy import answer_chunk
from tightrope.statistics import mcnemar_p_value, paired_difference

BATCH = 16
MAX_SEQUENCE = 128
RIVAL = "peer optimum-intel-int8"


def predictions(load: Load, rows: list[Arrays], classes: int) -> list[int]:
    """Run in a child: the class of each row."""
    run, _ = load()
    return answer_chunk(run, rows, BATCH, classes).argmax(axis=1).tolist()


def change(ours: list[int], theirs: list[int], labels: list[int]) -> str:
    """Points won over the other with interval, predictions that differ, p of McNemar's test."""
    right = [[one == label for one, label in zip(x, labels, strict=True)] for x in (ours, theirs)]
    pairs = Counter(zip(*right, strict=True))
    gained, lost = pairs[True, False], pairs[False, True]
    value, low, high = (100 * part for part in paired_difference(gained, lost, len(labels)))
    flips = sum(one != other for one, other in zip(ours, theirs, strict=True))
    points = f"{value:+.2f} ({low:+.2f} to {high:+.2f})".replace("-", "\N{MINUS SIGN}")
    return f"{points} | {flips} | {mcnemar_p_value(gained, lost):.2g}"


def main() -> None:
    """One row for each engine."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--rival", default=RIVAL)
    options = parser.parse_args()
    checkpoint = options.model / "checkpoint/checkpoint.json"
    examples = read_split(options.model / "splits/evaluation.json")
    rows = load_encoder(checkpoint, max_sequence=MAX_SEQUENCE)(examples)
    labels = [example["label"] for example in examples]
    classes = classes_of(checkpoint)
    found = {}
    for name, load in candidates(options.model, [], options.peers, physical_cores()).items():
        if not name.startswith("peak "):
            try:
                found[name] = supervised(predictions, load, rows, classes, limits=LIMITS)
            except WorkFailed as error:
                print(f"{name}: {error}", file=sys.stderr)
    heads = [f"points over {BASELINE}", "flips", "p", f"points over {options.rival}", "flips", "p"]
    print(f"| engine | accuracy | {' | '.join(heads)} |\n| --- |{' ---: |' * 7}")
    for name, own in found.items():
        accuracy = sum(map(int.__eq__, own, labels)) / len(labels)
        rivals = [found[one] for one in (BASELINE, options.rival) if one in found]
        cells = " | ".join(change(own, rival, labels) for rival in rivals)
        print(f"| {name} | {accuracy:.4f} | {cells} |")


if __name__ == "__main__":
    main()

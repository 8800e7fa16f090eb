"""Answer inputs: python predict.py INPUT ..., or --file FILE with an input per line.

In a program of your own: predict = load(), then predict(inputs), from any of its threads.
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from bundled.engine import load as load_engine
from bundled.machine import read_facts
from bundled.request import load_request

FOLDER = Path(__file__).resolve().parent
CHUNK = 256  # inputs whose lengths are sorted together


def logits_of(run, batches, inputs, classes):
    """Return float32 logits [inputs, classes], in the order of the inputs."""
    logits = np.zeros((len(inputs), classes), np.float32)
    for start in range(0, len(inputs), CHUNK):
        for indices, batch in batches(inputs[start : start + CHUNK]):
            logits[start + np.array(indices)] = run(batch)
    return logits


def load(folder=FOLDER, threads=None):
    """Return predict(inputs) -> [{"label": ..., "score": ...}], the probability of the best label.

    Inputs are texts, or the paths or bytes of image files. `threads` is how many the engine uses,
    without it those that it was measured with. One thread calls it, whichever thread asks.
    """
    facts = read_facts(folder)
    labels, batches = facts["labels"], load_request(folder, facts)
    caller, threads = ThreadPoolExecutor(1, "engine"), threads or facts["threads"]
    run = caller.submit(load_engine, folder / "engine", threads).result()

    def predict(inputs):
        inputs = [inputs] if isinstance(inputs, (str, bytes, Path)) else list(inputs)
        logits = logits_of(lambda b: caller.submit(run, b).result(), batches, inputs, len(labels))
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        best, scores = odds.argmax(axis=1), odds.max(axis=1) / odds.sum(axis=1)
        return [{"label": labels[i], "score": float(s)} for i, s in zip(best, scores, strict=True)]

    return predict


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("inputs", nargs="*", metavar="INPUT", help="a text or an image file")
    parser.add_argument("--file", type=Path)
    words = parser.parse_args()
    try:
        lines = words.file.read_text().splitlines() if words.file else []
        for answer in load()(words.inputs + lines or parser.error("no input")):
            print(f"{answer['label']}\t{answer['score']:.4f}")
    except (OSError, ValueError) as error:
        parser.error(str(error))

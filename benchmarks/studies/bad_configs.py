"""Bad configurations, generated from the good ones: each is one line that names a key, or a plan.

    .venv/bin/python benchmarks/studies/bad_configs.py 300

Takes a file of config/ by turns, and changes one to three of its values: another type, a number
without sense, a word from elsewhere, a key misspelt, missing or in another place. Each is checked
and planned in a process of its own, as each run does it before its jobs, with a limit of 60 s and
4 GB. Prints what came of all, and every seed whose end is not one line.
"""

import argparse
import multiprocessing
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from tightrope.errors import TightropeError
from tightrope.plan.config import checked
from tightrope.plan.plan import make_plan

REPOSITORY = Path(__file__).parents[2]
SECONDS, BYTES = 60, 4 * 2**30
VALUES: list[Any] = [
    *(None, True, [], {}, [[]], {"a": {"b": []}}, "", " ", "auto", "x" * 5000, "\x00", "\x1b[2J"),
    *(0, -1, 1, 7, 2**31, 2**64, 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("../../etc/passwd", "{model}", "{wildcards.model}", "~nosuchuser", "1e9", "0x10", "2x", "é"),
    *("cuda", "int8", "pytorch", "files:*", "scratch:bert?a=[", "hub:a/b", "random", "path:/"),
    *([1, "a", None], [-1], [{"batch": 1}], {"batch": 0, "sequence": 1}, list(range(2000))),
]
ACCEPTED, REFUSED = "a plan", "one line that names a key"
Place = tuple[Any, ...]


def main() -> None:
    """Check as many configurations as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("number", type=int)
    parser.add_argument("--seed", type=int, default=0, help="of the first; one more each")
    words = parser.parse_args()
    paths = sorted((REPOSITORY / "config").rglob("*.yaml"))
    good = [yaml.safe_load(path.read_text()) for path in paths if path.name != "schema.yaml"]
    good = [one for one in good if isinstance(one, dict) and "models" in one]
    ends: Counter[str] = Counter()
    slowest = 0.0
    for seed in range(words.seed, words.seed + words.number):
        generator = random.Random(seed)
        config, keys = spoilt(deepcopy(good[seed % len(good)]), generator)
        began = time.monotonic()
        end, said = outcome(config, keys)
        slowest = max(slowest, time.monotonic() - began)
        ends[end] += 1
        if end not in (ACCEPTED, REFUSED):
            print(f"seed {seed} ({', '.join(keys)}): {end}: {said}", flush=True)
    print(f"{words.number} configurations from {len(good)} files, slowest {slowest:.1f} s")
    for end, count in ends.most_common():
        print(f"{count:5d}  {end}")


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of each value in a configuration."""
    if place:
        yield place
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*place, key))


def spoilt(config: Any, generator: random.Random) -> tuple[Any, list[str]]:
    """Return the configuration with one to three changes, and the keys of the changed values."""
    keys = []
    for _ in range(generator.randint(1, 3)):
        known = list(places(config))
        if not known:
            break
        *way, last = generator.choice(known)
        inside = config
        for key in way:
            inside = inside[key]
        keys.append(str(next(key for key in reversed([*way, last]) if isinstance(key, str))))
        change = generator.choice(("value", "value", "value", "missing", "misspelt", "moved"))
        if change == "value" or isinstance(inside, list):
            inside[last] = deepcopy(generator.choice(VALUES))
        elif change == "missing":
            del inside[last]
        elif change == "misspelt":
            inside[f"{last}s"] = inside.pop(last)
        else:
            config[last] = inside.pop(last)
    return config, keys


def outcome(config: Any, keys: list[str]) -> tuple[str, str]:
    """Return what came of a configuration in a process of its own, and its words."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=plan, args=(config, theirs))
    process.start()
    theirs.close()
    if not ours.poll(SECONDS):
        process.kill()
        return f"hangs over {SECONDS} s", ""
    try:
        kind, said = ours.recv()
    except EOFError:
        process.join()
        return f"the process died ({process.exitcode})", ""
    process.join()
    if kind != REFUSED:
        return kind, said
    if "\n" in said or len(said) > 1000:
        return "more than one line", said[:200]
    named = any(key.lower() in said.lower() for key in keys) or said.startswith("config: ")
    return (REFUSED, said) if named else ("a line that names no key", said)


def plan(config: Any, pipe: Connection) -> None:
    """Check and plan a configuration, and send what came of it."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    try:
        make_plan(checked(config, REPOSITORY / "config/schema.yaml"))
        pipe.send((ACCEPTED, ""))
    except TightropeError as error:
        pipe.send((REFUSED, str(error)))
    except BaseException as error:
        pipe.send((f"a traceback of {type(error).__name__}", str(error)[:300]))


if __name__ == "__main__":
    main()

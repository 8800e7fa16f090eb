"""Mutated artifacts of every kind, each read by a job that depends on it.

    .venv/bin/python benchmarks/studies/mutated_artifacts.py 400

From finished tiny runs a file is taken, of each kind by turns, and changed: truncated, a bit
flipped, emptied, a value changed, of another type or left out, replaced by the file of another
model or variant (also one that its user trusts, see tools/reseal.py), by a pipe, a folder or a
link; with its modification time kept or not. Then a job that reads it runs again in a fork, with
60 s and its own limit of memory: it has to end in one line that names the file, and to write
nothing but a failure. Prints what came of all by kind, and each one that ended otherwise.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import chdir
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))

from mutated_projects import (
    SECRET,
    Kinds,
    finished_projects,
    restore,
    seal_of,
    state,
    states,
    swapped,
)
from mutations import BYTES, DOCUMENTS
from replayed_jobs import End, Job, run_again
from tightrope.artifacts.seals import seal
from tiny_project import Project

REFUSED, FAILED, SAME = "refused in one line", "a failure recorded", "the same bytes as before"
USED, TRUSTED = "silently used", "of the same model, and trusted"
MADE, UNREAD = "made again", "not read"
SUMMARY = "reports/summary.json"
SWAPS = ("of another", "of another, trusted")
GOOD = (REFUSED, FAILED, SAME, MADE, UNREAD, TRUSTED)


def main() -> None:
    """Mutate as many artifacts as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("number", type=int)
    parser.add_argument("--seed", type=int, default=0, help="of the first; one more each")
    parser.add_argument("--snakemake", action="store_true", help="by the plain command instead")
    parser.add_argument("--projects", type=Path, help="a folder that keeps the finished runs")
    words = parser.parse_args()
    folder = words.projects or Path(tempfile.mkdtemp(prefix="mutated."))
    ends: Counter[tuple[str, str]] = Counter()
    try:
        kinds = Kinds([*finished_projects(folder)])
        for seed in range(words.seed, words.seed + words.number):
            kind, what, job, end, said = mutated(kinds, seed, whole=words.snakemake)
            ends[kind, end] += 1
            if words.snakemake or end not in GOOD[:-1]:
                print(f"seed {seed}: {what}, read by {job}: {end}: {said}", flush=True)
    finally:
        print_table(ends)
        if not words.projects:
            shutil.rmtree(folder)


def print_table(ends: Counter[tuple[str, str]]) -> None:
    """Print the ends by kind as a table."""
    columns = [*GOOD, *sorted({end for _, end in ends} - {*GOOD})]
    print(f"\n| file | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
    for kind in sorted({kind for kind, _ in ends}):
        print(f"| {kind} | {' | '.join(str(ends[kind, end]) for end in columns)} |")
    total = [str(sum(count for (_, one), count in ends.items() if one == end)) for end in columns]
    print(f"| all | {' | '.join(total)} |")


def mutated(kinds: Kinds, seed: int, *, whole: bool) -> tuple[str, str, str, str, str]:
    """Mutate a file; return its kind, what was done, who read it, how that ended, its words.

    A job reads it, or the `whole` command.
    """
    draw = random.Random(seed)
    kind, project, path = kinds.choose(seed, draw)
    job = draw.choice(project.readers(path))
    reader = "snakemake" if whole else str(job)
    working = project.working
    if whole:  # with Snakemake's own state as it was, which is not restored
        working = project.pristine.copy(working.folder.with_suffix(".whole"))
    os.chdir(working.folder)
    before = states(working)
    what = change(working, path, project.others(path), draw)
    changed = states(working)
    try:
        if whole:
            return kind, f"{path} {what}", reader, *by_snakemake(path, working)
        end = run_again(job, working / "scripts")
        found, said = judged(path, job, end, before, changed, working)
        if found == USED and f"trusted: {Path(*Path(path).parts[:2])}/" in what:
            found = TRUSTED
        return kind, f"{path} {what}", reader, found, said
    finally:
        if whole:
            shutil.rmtree(working.folder)
        else:
            restore(project.pristine, working, path)


def change(project: Project, path: str, others: list[str], draw: random.Random) -> str:
    """Change a file of a project in one way; return which."""
    file = project / path
    status = file.stat()
    document = path.endswith(".json") and not path.startswith(".snakemake")
    ways = [*BYTES, *(DOCUMENTS if document else ()), *(SWAPS if others else ())]
    if path == SECRET:
        ways.remove("deleted")  # a run makes a secret before its jobs, so that none is without
    way = draw.choice(ways)
    if way in SWAPS:
        other = swapped(project, path, draw.choice(others))
        way = f"{way}: {other}"
        if "trusted" in way:
            seal(path)
    else:
        {**BYTES, **DOCUMENTS}[way](file, draw)
    kept = draw.random() < 0.5
    if kept and file.is_file() and not file.is_symlink():
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    return f"{way}, time {'kept' if kept else 'new'}"


def judged(
    path: str,
    job: Job,
    end: End,
    before: dict[str, str],
    changed: dict[str, str],
    project: Project,
) -> tuple[str, str]:
    """Return how a job ended, in words, and what it said."""
    after = states(project)
    written = {one for one in {*after, *changed} if after.get(one) != changed.get(one)}
    own = [str(one) for one in job.given["output"]]
    beside = {str(Path(one).parent) for one in own if Path(one).name in ("engine.json",)}
    foreign = {
        one
        for one in written - {*own, *map(seal_of, own), str(job.log)}
        if not any(one.startswith(f"{folder}/") for folder in beside)
    }
    last = end.said.strip()[-300:]
    if end.code == "hang":
        return "hangs", last
    if "Traceback (most recent call last)" in end.said:
        return "a traceback", last
    if foreign:
        return "another file written", ", ".join(sorted(foreign))
    if end.code:
        return refusal(path, end, {*own} & written)
    if changed.get(path) == before.get(path):
        return SAME, ""
    if all(after.get(one) == before.get(one) for one in own):
        return UNREAD, ""
    with chdir(project.folder):
        return recorded(own, path, last)


def by_snakemake(path: str, project: Project) -> tuple[str, str]:
    """Return how the plain command ends, in words, and its first line with an error."""
    kept, before = state(project / path), state(project / SUMMARY)
    try:
        done = project.snakemake()
    except subprocess.TimeoutExpired:
        return "hangs", ""
    names = {Path(path).name, Path(path).parent.name, "secret"}
    lines = [line for line in done.stdout.splitlines() if any(name in line for name in names)]
    if "Traceback (most recent call last)" in done.stdout:
        return "a traceback", done.stdout.strip()[-300:]
    if done.returncode:
        # the jobs after it, and the run that goes on without them, repeat it
        return REFUSED if lines else "no line that names it", [*lines, done.stdout[-300:]][0]
    if state(project / path) != kept:
        return MADE, ""
    same = path == SUMMARY or state(project / SUMMARY) == before
    return (UNREAD if same else USED), ""


def refusal(path: str, end: End, written: set[str]) -> tuple[str, str]:
    """Return whether a job that failed said why in one line, and left its output alone."""
    errors = end.errors
    names = {Path(path).name, Path(path).parent.name}
    if len(errors) != 1:
        return f"{len(errors)} lines of errors", end.said.strip()[-300:]
    if not any(name in errors[0] for name in names) and "secret" not in path:
        return "a line that names another file", errors[0]
    # Snakemake deletes the output of a job before it begins
    if any(Path(one).exists() for one in written):
        return "refused, but output written", ", ".join(written)
    return REFUSED, errors[0]


def recorded(outputs: list[str], path: str, last: str) -> tuple[str, str]:
    """Return whether a job that ended well recorded a failure that names the file."""
    text = Path(outputs[0]).read_bytes().decode(errors="replace")
    if '"status": "failed"' in text or "tightrope.failed" in text:
        named = any(name in text for name in (Path(path).name, Path(path).parent.name))
        return (FAILED, "") if named else ("a failure that names no file", text[:300])
    return USED, last


if __name__ == "__main__":
    main()

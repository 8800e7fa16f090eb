"""Hostile files of others, each given to the pipeline as its user would name it.

    .venv/bin/python benchmarks/studies/hostile_files.py

Checkpoints with code, tokenizers, ONNX files that read other files or never end, archives, tables,
images, links, pipes, names and configurations. Each is planned, and read by the jobs that a run
would give it to, in forks with limits of time and memory; configurations by the real `snakemake`.
It has to end in one line that names the file or key, or to be taken without harm. No payload may
run, nothing may be written outside the folder of the run, and what is outside must not be read.
"""

import argparse
import importlib
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))

import hostile_checkpoints
import hostile_configs
import hostile_images
import hostile_onnx
import hostile_tables
from hostile_cases import REPOSITORY, Case, Ended, Sandbox
from tiny_project import new_project

# imported once, not in each fork
LIBRARIES = ("torch", "transformers", "onnxruntime", "onnxslim", "onnxscript", "pyarrow.parquet")
LIBRARIES += ("pandas", "PIL.Image", "torch.onnx._internal.exporter._core")
REFUSED, TAKEN = "refused in one line", "taken, its payload left out"
RECORDED, ITS_OWN = "a failure recorded", "refused by Snakemake in its words"
GOOD = (REFUSED, TAKEN, RECORDED, ITS_OWN)


def main() -> None:
    """Give all hostile files to the pipeline."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="cases with this in their names")
    words = parser.parse_args()
    for library in LIBRARIES:
        importlib.import_module(library)
    folder = Path(tempfile.mkdtemp(prefix="hostile."))
    ends: Counter[tuple[str, str]] = Counter()
    try:
        project = new_project(REPOSITORY, folder / "tightrope")
        for kind, case in cases():
            if words.only in f"{kind}: {case.name}":
                sandbox = Sandbox(folder / "case", project)
                end, said = judged(case, sandbox)
                ends[kind, end] += 1
                wrong = "" if end in GOOD and (end != TAKEN or case.harmless) else "!! "
                print(f"{wrong}{kind}: {case.name}: {end}: {said[:300]}", flush=True)
                shutil.rmtree(sandbox.folder)
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    print_table(ends)


def cases() -> Iterator[tuple[str, Case]]:
    """Yield all cases with the kind of their files."""
    kinds = {
        **{"checkpoint": hostile_checkpoints.CASES, "ONNX": hostile_onnx.CASES},
        **{"table": hostile_tables.TABLES, "archive": hostile_images.ARCHIVES},
        **{"image": hostile_images.IMAGES, "name": hostile_images.NAMES},
        "configuration": hostile_configs.CASES,
    }
    for kind, found in kinds.items():
        yield from ((kind, case) for case in found)


def judged(case: Case, sandbox: Sandbox) -> tuple[str, str]:
    """Return how the pipeline took a case, and its words."""
    ended = sandbox.run(case)
    if sandbox.marker.exists():
        return "ITS PAYLOAD RAN", ended.said
    if changed := sandbox.changed_outside():
        return "written outside", ", ".join(changed)
    if ended.hangs:
        return "hangs", ended.said[-300:]
    if case.before_us and ended.code:
        return ITS_OWN, ended.said.strip().splitlines()[-1]
    if "Traceback (most recent call last)" in ended.said:
        return "a traceback", ended.said.strip().splitlines()[-1]
    if sandbox.secret_is_inside():
        return "a private file was copied", ended.said
    if ended.code == 0:
        return (RECORDED if sandbox.failure_is_recorded() else TAKEN), ""
    return line_of(case, ended)


def line_of(case: Case, ended: Ended) -> tuple[str, str]:
    """Return whether a refusal is one line that names what the case is about."""
    lines = ended.errors
    if len(lines) != 1:
        return f"{len(lines)} lines of errors", ended.said.strip()[-300:]
    if any(ord(one) < 32 or ord(one) == 127 for one in lines[0]):
        return "a line that controls the terminal", ascii(lines[0])
    if not any(name in lines[0] for name in case.named):
        return "a line that names something else", lines[0]
    return REFUSED, lines[0]


def print_table(ends: Counter[tuple[str, str]]) -> None:
    """Print the ends by kind as a table."""
    columns = [*GOOD, *sorted({end for _, end in ends} - {*GOOD})]
    print(f"\n| files | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
    for kind in dict.fromkeys(kind for kind, _ in ends):
        print(f"| {kind} | {' | '.join(str(ends[kind, end]) for end in columns)} |")
    total = [str(sum(count for (_, one), count in ends.items() if one == end)) for end in columns]
    print(f"| all, {sum(ends.values())} | {' | '.join(total)} |")


if __name__ == "__main__":
    main()

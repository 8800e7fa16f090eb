"""Kills of the tiny run at random moments, each followed by the plain command.

    .venv/bin/python benchmarks/studies/kills.py 50 --start empty
    .venv/bin/python benchmarks/studies/kills.py 50 --start warm --seed 100

SIGKILL goes to the whole process group of Snakemake. Prints a row of a Markdown table for each
seed: the moment, the jobs that had ended by then, and whether the plain command completes the run
with the files and bytes of one that was not disturbed, all variants measured, leaves nothing to do
and no half-written file. `empty` starts from no artifact, `warm` from a finished run of which an
artifact was deleted, with what was built from it.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests/support"))

from reproduced import ENGINES, VARIANTS, differences
from slurm_project import statuses
from tiny_project import MODEL, Project, new_project

REPOSITORY = Path(__file__).parents[2]
# from the first artifact to the last; before a run from a warm folder the end of it is deleted:
# Snakemake makes no missing file again that nothing needs
CHAIN = (
    f"artifacts/{MODEL}/model.onnx",
    f"artifacts/{MODEL}/model.simplified.onnx",
    f"artifacts/{MODEL}/calibration/minmax-8.json",
    f"artifacts/{MODEL}/quantized/u8s8-minmax-8.onnx",
    f"artifacts/{MODEL}/engines/{VARIANTS[1]}/engine.json",
)
# a variable of its own: the plain command in a process of its own, as a user starts it
COLD = {"PYTHONUNBUFFERED": "1"}


def main() -> None:
    """Kill as many runs as the command line says."""
    words = command_line(__doc__ or "")
    folder = Path(tempfile.mkdtemp(prefix="kills."))
    try:
        fresh = new_project(REPOSITORY, folder / "fresh")
        fresh.configure(engines=ENGINES)
        study(fresh, words)
    finally:
        shutil.rmtree(folder)


def command_line(description: str) -> argparse.Namespace:
    """Return the words of a study of kills."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("kills", type=int)
    parser.add_argument("--start", choices=("empty", "warm"), default="empty")
    parser.add_argument("--seed", type=int, default=0, help="of the first kill; one more each")
    return parser.parse_args()


def study(
    fresh: Project,
    words: argparse.Namespace,
    *options: str,
    settle: Callable[[Project, int], str] | None = None,
) -> None:
    """Print a row for each kill of runs of the project with these options of Snakemake.

    `settle` deals with what a killed run left at work, given its seed, before the plain command;
    what it returns is a column of its own. An AssertionError of it is the outcome of that kill.
    """
    Project.seconds = 3600  # other load may be beside it
    folder = fresh.folder.parent
    finished = fresh.copy(folder / "finished")
    seconds = seconds_of_run(finished, *options)
    print(f"an undisturbed run from an empty folder takes {seconds:.0f} s")
    if words.start == "warm":
        chain = finished.copy(folder / "warm")
        delete(chain, CHAIN)
        seconds = seconds_of_run(chain, *options)
        print(f"and one from a warm folder, with all of the chain deleted, {seconds:.0f} s")
    heads = ["seed", "deleted from", "killed after, s", "jobs by then"]
    heads += ["left at work"] if settle else []
    print(f"\n| {' | '.join([*heads, 'the plain command'])} |\n{'| --- ' * (len(heads) + 1)}|")
    good = 0
    for seed in range(words.seed, words.seed + words.kills):
        start = finished if words.start == "warm" else fresh
        project, row = killed(start, folder / "project", seed, seconds, *options)
        try:
            left = [settle(project, seed)] if settle else []
            said = completed(project, finished, *options)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            left, said = ["?"] if settle else [], " ".join(str(error).split())[-300:]
        good += said == "complete, equal"
        print(f"| {seed} | {' | '.join([*row, *left, said])} |", flush=True)
        shutil.rmtree(project.folder)
    print(f"\n{good} of {words.kills} complete and equal")


def seconds_of_run(project: Project, *options: str) -> float:
    """Run the project undisturbed; return what it takes."""
    began = time.monotonic()
    project.run(*options, **COLD)
    return time.monotonic() - began


def delete(project: Project, paths: Iterable[str]) -> None:
    """Delete these files of a project."""
    for path in paths:
        (project / path).unlink()


def killed(
    start: Project, folder: Path, seed: int, seconds: float, *options: str
) -> tuple[Project, tuple[str, ...]]:
    """Kill a run of a copy in `folder` within so many seconds; return it and the facts of the kill.

    Where the run has ended by then, the moment is drawn again from the seconds that it took.
    """
    generator = random.Random(seed)
    warm = (start / "artifacts").exists()
    first = generator.randrange(len(CHAIN)) if warm else len(CHAIN)
    while True:
        project = start.copy(folder)
        delete(project, CHAIN[first:])
        moment, began = generator.uniform(0.0, seconds), time.monotonic()
        running = project.start(*options)
        while running.poll() is None and time.monotonic() < began + moment:
            time.sleep(0.01)
        if running.poll() is None:
            break
        seconds = min(seconds, time.monotonic() - began)
        shutil.rmtree(folder)
    os.killpg(running.pid, signal.SIGKILL)
    output, _ = running.communicate(timeout=30)
    jobs = sum(line.startswith("[") for line in output.splitlines())
    deleted = Path(CHAIN[first]).name if warm else "-"
    return project, (deleted, f"{moment:.1f}", str(jobs))


def completed(project: Project, finished: Project, *options: str) -> str:
    """Run the plain command; return what it left. Raises AssertionError where it fails."""
    project.run(*options, **COLD)
    left = [*sorted(project.plan(*options)), *differences(project, finished)]
    left += sorted(project.files() ^ finished.files())
    left += [f"{one} {status}" for one, status in statuses(project).items() if status != "ok"]
    return ", ".join(left) or "complete, equal"


if __name__ == "__main__":
    main()

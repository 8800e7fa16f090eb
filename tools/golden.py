"""What the pipeline makes, kept outside git to compare the next state of the program with.

    .venv/bin/python tools/golden.py make FOLDER        the default run, the tests' tiny run, plans
    .venv/bin/python tools/golden.py compare OLD NEW    what differs, one line each

Numbers that are measured differ from run to run; of the summary only the keys are compared. Of
manifests what names code and content is left out.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
JOB = re.compile(r"^    log: artifacts/logs/(\S+)\.log\b", re.MULTILINE)
# of the chain: the same bytes wherever and whenever they are made
CHAIN = (
    "data/**/*",
    "source/*",
    "splits/*",
    "checkpoint/*",
    "*.onnx",
    "calibration/*",
    "quantized/*",
)
# of a document: what follows from the code, the clock or the machine's load
MEASURED = re.compile(r"content_sha256|made_with|schema|_s$|_rss_|^libraries$|^code$|^log$")


def make(folder: Path) -> None:
    """Run the default configuration and the tiny project, and plan every configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "default").exists():  # it takes minutes: it may be there from before
        snakemake(copy_of_checkout(folder / "default"), "reports/summary.html")
    tiny = (
        "import sys; sys.path[:0] = ['scripts', 'tests/support']\n"
        "from pathlib import Path; from tiny_project import new_project\n"
        f"new_project(Path.cwd(), Path({str(folder / 'tiny')!r})).run()"
    )
    subprocess.run([sys.executable, "-c", tiny], cwd=ROOT, check=True)
    plans = copy_of_checkout(folder / "plans")
    for path in sorted([ROOT / "config/config.yaml", *ROOT.glob("config/experiments/*.yaml")]):
        told = snakemake(plans, "-n", "--verbose", "--configfile", str(path.relative_to(ROOT)))
        jobs = sorted(JOB.findall(told)) or told.splitlines()[-1:]
        (folder / f"plans/{path.stem}.txt").write_text("".join(f"{job}\n" for job in jobs))


def copy_of_checkout(folder: Path) -> Path:
    """Return the folder with what git has of this commit."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder


def snakemake(folder: Path, *words: str) -> str:
    """Return what Snakemake says in the folder."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *words]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.run(command, cwd=folder, env=environment, **streams, check=False).stdout


def compare(old: Path, new: Path) -> Iterator[str]:
    """Yield a line for each difference."""
    for path in sorted({one.name for folder in (old, new) for one in folder.glob("plans/*.txt")}):
        jobs = [set((one / "plans" / path).read_text().split("\n")) for one in (old, new)]
        yield from (f"plans/{path}: only in {name}: {job}" for name, job in differing(*jobs))
    for run in ("default", "tiny"):
        for name in sorted(files_of(old / run) | files_of(new / run)):
            paths = [folder / run / name for folder in (old, new)]
            missing = [path for path in paths if not path.is_file()]
            if missing:
                yield f"missing: {missing[0]}"
            elif content(paths[0]) != content(paths[1]):
                yield f"differs: {run}/{name}"
        keys = [set(keys_of(read(folder / run / "reports/summary.json"))) for folder in (old, new)]
        yield from (f"{run}/summary.json: only in {name}: {key}" for name, key in differing(*keys))


def differing(old: set[str], new: set[str]) -> Iterator[tuple[str, str]]:
    """Yield what is in one of two sets alone."""
    yield from (("old", one) for one in sorted(old - new))
    yield from (("new", one) for one in sorted(new - old))


def files_of(run: Path) -> set[str]:
    """Return the files of the chain, and the records of accuracy, which hold every prediction."""
    found = [path for pattern in CHAIN for path in run.glob(f"artifacts/*/{pattern}")]
    found += run.glob("reports/*/*.accuracy.json")
    return {path.relative_to(run).as_posix() for path in found if path.is_file()}


def content(path: Path) -> Any:
    """Return what must be equal: bytes, or of a document all but what is measured."""
    return plain(read(path)) if path.suffix == ".json" else path.read_bytes()


def plain(value: Any) -> Any:
    """Return a document without what is measured or follows from the code."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: plain(one) for key, one in value.items() if not MEASURED.search(key)}


def keys_of(value: Any, place: str = "") -> Iterator[str]:
    """Yield the keys of a document at all levels, those of lists together."""
    items = value.items() if isinstance(value, dict) else ()
    for key, one in items:
        yield f"{place}.{key}"
        yield from keys_of(one, f"{place}.{key}")
    for one in value if isinstance(value, list) else ():
        yield from keys_of(one, f"{place}[]")


def read(path: Path) -> Any:
    """Read a JSON document."""
    return json.loads(path.read_text())


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", choices=("make", "compare"))
    parser.add_argument("folders", nargs="+", type=Path)
    words = parser.parse_args()
    if words.what == "make":
        make(words.folders[0].resolve())
    else:
        print(*compare(*words.folders), sep="\n")


if __name__ == "__main__":
    main()

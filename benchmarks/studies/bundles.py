"""Bundles in fresh environments, each made of its own requirements.txt, without this project.

    .venv/bin/python benchmarks/studies/bundles.py artifacts/*/bundle/*.tar.gz

In the folder of the run. For each archive prints a row of a Markdown table: bytes of the archive
and unpacked, packages and bytes of the environment, seconds from the archive to the first answer
(with the environment installed), equal predictions on the whole evaluation split, and what
verify.py says of files, answers and latency. Nothing else should run meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from tightrope.inputs.encode import read_split

# answers the texts of a file as JSON, and says whether this project is there
DRIVER = """
import json, sys
from importlib.util import find_spec
from predict import load

answers = load()(json.load(open(sys.argv[1])))
json.dump([one["label"] for one in answers], open(sys.argv[2], "w"))
assert find_spec("tightrope") is None
"""
COLUMNS = (
    "bundle",
    "MB",
    "unpacked, MB",
    "packages",
    "environment, MB",
    "first answer, s",
    "equal",
    "verify.py",
)


def main() -> None:
    """Try the bundles that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundles", type=Path, nargs="+")
    words = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"| {' | '.join(['---'] * len(COLUMNS))} |", flush=True)
    for bundle in words.bundles:
        with tempfile.TemporaryDirectory(prefix="bundle.") as folder:
            cells = tried(bundle.absolute(), Path(folder))
        print(f"| {bundle.name.removesuffix('.tar.gz')} | {' | '.join(cells)} |", flush=True)


def tried(bundle: Path, folder: Path) -> list[str]:
    """Return the cells of a bundle after its name."""
    first = unpack(bundle, folder / "first")
    python = environment(folder / "venv", first / "requirements.txt")
    packages = json.loads(run(python, "-m", "pip", "list", "--format=json"))
    examples, record = evaluation(bundle), json.loads((first / "record/accuracy.json").read_text())
    os.sync()  # what pip has written is no part of it
    began = time.monotonic()
    again = unpack(bundle, folder / "again")
    run(python, "predict.py", examples[0]["text"], cwd=again)
    seconds = time.monotonic() - began
    texts, labels = folder / "texts.json", folder / "labels.json"
    texts.write_text(json.dumps([example["text"] for example in examples]))
    run(python, "-c", DRIVER, str(texts), str(labels), cwd=again)
    named = json.loads((again / "bundle.json").read_text())["labels"]
    expected = [named[index] for index in record["predictions"]]
    equal = sum(a == b for a, b in zip(json.loads(labels.read_text()), expected, strict=True))
    return [
        f"{bundle.stat().st_size / 1e6:.1f}",
        f"{size_of(first) / 1e6:.1f}",
        str(len([one for one in packages if one["name"] not in ("pip", "setuptools")])),
        f"{size_of(folder / 'venv') / 1e6:,.0f}",
        f"{seconds:.1f}",
        f"{equal:,} of {len(expected):,}",
        verified(python, again),
    ]


def evaluation(bundle: Path) -> list[dict[str, str]]:
    """Return the texts of the evaluation split of the model of a bundle, with their labels."""
    return list(read_split(bundle.parents[1] / "splits/evaluation.json"))


def unpack(bundle: Path, folder: Path) -> Path:
    """Unpack a bundle; return the folder that it holds."""
    with tarfile.open(bundle) as archive:
        archive.extractall(folder)
    return next(folder.iterdir())


def environment(folder: Path, requirements: Path) -> str:
    """Make a virtual environment of these requirements; return its Python."""
    run(sys.executable, "-m", "venv", str(folder))
    python = str(folder / "bin/python")
    run(python, "-m", "pip", "install", "--quiet", "-r", str(requirements))
    return python


def verified(python: str, folder: Path) -> str:
    """Return the lines of verify.py on answers and latency as one."""
    lines = run(python, "verify.py", cwd=folder).splitlines()
    wanted = ("answers", "latency", "why")
    return "; ".join(" ".join(line.split()[1:]) for line in lines if line.startswith(wanted))


def run(*words: str, cwd: Path | None = None) -> str:
    """Return what a program prints, which must end well; it knows nothing of this environment."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    kept = {key: value for key, value in os.environ.items() if key not in hidden}
    done = subprocess.run(words, cwd=cwd, env=kept, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words[:4])}: {done.stdout}{done.stderr}")
    return done.stdout


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()

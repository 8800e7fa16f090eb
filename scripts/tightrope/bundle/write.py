"""Write a bundle: what it takes to answer with an engine, and to prove that it is the measured one.

A folder `{model}-{variant}` in a .tar.gz: `engine/`, the tokenizer or the settings of images,
`bundle.json`, the programs, `sample/`, `record/`, `README.md` (its model card) and `SHA256SUMS`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import json_bytes, read_bytes
from tightrope.bundle.archive import write_archive
from tightrope.bundle.card import card
from tightrope.bundle.facts import facts_of
from tightrope.bundle.requirements import pinned, requirements_txt
from tightrope.bundle.sample import sample_files
from tightrope.bundle.subject import Paths, Subject, read_subject
from tightrope.records.accuracy import logits_file

ENGINE, RECORD, PACKAGE = "engine", "record", "bundled"
# the folder of the programs of engines; where a program goes that is not in PACKAGE under its name
ENGINES = "engines"
PLACES = {
    "predict.py": "predict.py",
    "verify.py": "verify.py",
    "texts.py": f"{PACKAGE}/request.py",
    "images.py": f"{PACKAGE}/request.py",
}
TOKENIZER, MANIFEST = "tokenizer.json", "engine.json"


def write_bundle(
    target: Path | str,
    paths: Paths,
    *,
    programs: Sequence[Path],
    template: Path,
    longest: int,
) -> None:
    """Write the bundle of an engine that was built, measured and reported.

    `programs` are those for the engine and the task, `longest` is at how many tokens texts are cut.
    Raises TightropeError as `read_subject` does.
    """
    subject = read_subject(paths)
    write_archive(target, subject.name, contents(subject, programs, template, longest))


def contents(
    subject: Subject, programs: Sequence[Path], template: Path, longest: int
) -> dict[str, bytes | Path]:
    """Return all files of a bundle by their names."""
    facts = facts_of(subject, longest=longest)
    files = MANIFEST, *subject.engine["files"]
    engine, task = subject.variant.engine, subject.checkpoint["task"]
    packages = pinned(engine, task, subject.engine["libraries"])
    return {
        **{f"{ENGINE}/{name}": subject.folder / name for name in files},
        **programs_of(programs),
        **inputs_of(subject),
        **sample_files(subject.paths.artifacts.data, subject.accuracy),
        **records_of(subject),
        "bundle.json": json_bytes(facts),
        "requirements.txt": requirements_txt(packages).encode(),
        "README.md": card(subject, facts, template).encode(),
    }


def programs_of(programs: Iterable[Path]) -> dict[str, bytes | Path]:
    """Return the programs by their names in the bundle; that of the engine is in `engines/`."""
    places = {path: PLACES.get(path.name, f"{PACKAGE}/{path.name}") for path in programs}
    engines = {path: f"{PACKAGE}/engine.py" for path in places if path.parent.name == ENGINES}
    return {
        f"{PACKAGE}/__init__.py": b"",
        **{name: path for path, name in (places | engines).items()},
    }


def inputs_of(subject: Subject) -> Mapping[str, Path]:
    """Return the tokenizer of a model of texts; the settings of images are in bundle.json."""
    if TOKENIZER not in subject.checkpoint["files"]:
        return {}
    return {TOKENIZER: subject.paths.artifacts.checkpoint.parent / TOKENIZER}


def records_of(subject: Subject) -> dict[str, bytes]:
    """Return the records of the measurements, and the entry of summary.json."""
    result: dict[str, Any] = dict(subject.result)
    return {
        f"{RECORD}/latency.json": read_bytes(subject.paths.latency),
        f"{RECORD}/accuracy.json": read_bytes(subject.paths.accuracy),
        f"{RECORD}/logits.npy": read_bytes(logits_file(subject.paths.accuracy)),
        f"{RECORD}/result.json": json_bytes(result),
    }

"""Write a bundle: what it takes to answer with an engine, and to prove that it is the measured one.

A folder `{model}-{variant}` in a .tar.gz: `engine/`, the tokenizer or the settings of images,
`bundle.json`, the programs, `sample/`, `record/`, `README.md` (its model card) and `SHA256SUMS`.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import to_builtins

from tightrope.artifacts.files import json_bytes, open_regular, read_bytes, writing
from tightrope.bundle.facts import card, facts_of
from tightrope.bundle.subject import Paths, pinned, read_subject
from tightrope.inputs.encode import read_split
from tightrope.measure.accuracy import BATCH, CHUNK
from tightrope.records.accuracy import AccuracyRecord, logits_file

# where a program goes that is not in the package `bundled` under its name
PLACES = {"predict.py": "predict.py", "verify.py": "verify.py"}
PLACES |= dict.fromkeys(("texts.py", "images.py"), "bundled/request.py")
TOKENIZER, MANIFEST, SUMS = "tokenizer.json", "engine.json", "SHA256SUMS"
# of an engine's weights a higher level saves a hundredth, and takes three times as long
LEVEL = 6
# the first ones of the split: the bundle computes them in the batches in which they were measured,
# as the int8-dynamic of PyTorch depends on what else is in a batch
TEXTS, IMAGES = CHUNK, BATCH
Files = Mapping[str, bytes | Path]


def write_bundle(
    target: Path | str, paths: Paths, *, programs: Sequence[Path], template: Path, longest: int
) -> None:
    """Write the bundle of an engine that was built, measured and reported.

    `programs` are those for the engine and the task, `longest` is at how many tokens texts are cut.
    Raises TightropeError as `read_subject` does.
    """
    subject = read_subject(paths)
    facts = facts_of(subject, longest=longest)
    engine, checkpoint = paths.artifacts.engine.parent, paths.artifacts.checkpoint.parent
    # the settings of images are in bundle.json
    encoders = {TOKENIZER} & subject.checkpoint["files"].keys()
    packages = pinned(
        subject.variant.engine, subject.checkpoint["task"], subject.engine["libraries"]
    )
    pins = "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))
    contents = {
        **{f"engine/{name}": engine / name for name in (MANIFEST, *subject.engine["files"])},
        "bundled/__init__.py": b"",
        **{place_of(path): path for path in programs},
        **{name: checkpoint / name for name in encoders},
        **sample_files(paths.artifacts.data, subject.accuracy),
        "record/latency.json": json_bytes(to_builtins(subject.latency)),
        "record/accuracy.json": read_bytes(paths.accuracy),
        "record/logits.npy": read_bytes(logits_file(paths.accuracy)),
        "record/result.json": json_bytes(to_builtins(subject.result)),
        "bundle.json": json_bytes(facts),
        "requirements.txt": pins.encode(),
        "README.md": card(subject, facts, template).encode(),
    }
    write_archive(target, f"{subject.model}-{subject.variant}", contents)


def place_of(program: Path) -> str:
    """Return where a program goes: the one of the engine, and of its inputs, have fixed names."""
    name = "engine.py" if program.parent.name == "engines" else program.name
    return PLACES.get(name, f"bundled/{name}")


def write_archive(target: Path | str, folder: str, files: Files) -> None:
    """Write `files`, by their paths in `folder`, and last SHA256SUMS for `sha256sum --check`.

    Names, order, times and owners are fixed: the same files give the same bytes. Raises
    ArtifactError for a file that cannot be read.
    """
    with (
        writing(target) as stream,
        gzip.GzipFile("", "wb", LEVEL, stream, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        sums = ""
        for name in sorted(files):
            assert not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts
            sums += f"{add(archive, f'{folder}/{name}', files[name])}  {name}\n"
        add(archive, f"{folder}/{SUMS}", sums.encode())


def add(archive: tarfile.TarFile, name: str, content: bytes | Path) -> str:
    """Add one file; return its SHA-256."""
    entry = tarfile.TarInfo(name)
    entry.mode = 0o644
    if isinstance(content, bytes):
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
        return hashlib.sha256(content).hexdigest()
    with open_regular(content) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        entry.size = file.tell()
        file.seek(0)
        archive.addfile(entry, file)
    return digest


def sample_files(data: Path, record: AccuracyRecord) -> dict[str, bytes]:
    """Return sample.json, what a record says of each example; of images their files too.

    An empty list where nothing was predicted.
    """
    files, lines = dict[str, bytes](), list[str]()
    examples = read_split(data) if record.predictions else []
    most = IMAGES if examples and "image" in examples[0] else TEXTS
    # labels are there of what was predicted
    answers = zip(record.labels or [], record.predictions, record.margins, strict=False)
    for index, (one, answer) in enumerate(zip(examples[:most], answers, strict=False)):
        told: dict[str, Any] = dict(zip(("label", "prediction", "margin"), answer, strict=True))
        told["index"] = index
        if "image" in one:
            from PIL import Image

            suffix = str(Image.open(io.BytesIO(one["image"])).format).lower()
            told["image"] = f"sample/{index:03}.{suffix}"
            files[told["image"]] = one["image"]
        else:
            told["text"] = one["text"]
        lines.append(json.dumps(told, sort_keys=True))
    text = "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"
    return {**files, "sample/sample.json": text.encode()}

"""Artifacts that were changed, and JSON of another's making: one line that names the file."""

import json
import os
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from artifact_files import written
from page_parts import PARTS
from tightrope.artifacts import manifest_types
from tightrope.artifacts.files import copy_file, read_bytes, read_json, sha256
from tightrope.artifacts.manifest import open_manifest
from tightrope.errors import ArtifactError, TightropeError, WorkFailed
from tightrope.inputs.encode import read_split
from tightrope.int8.calibrate import read_cache
from tightrope.onnx.file import load_onnx
from tightrope.report import html
from tightrope.report.graphs.describe import describe
from tightrope.report.page import render_page
from tightrope.report.sections.graphs import graphs_section
from tightrope.summary.document import read_reported
from tightrope.summary.models import data_entry
from tightrope.terminal.jobs import Seconds
from tiny_model import TinyModel

ROOT = Path(__file__).parents[3]
SUMMARY = ROOT / "tests/data/summary.json"
# values in the place of any other
OTHERS: list[Any] = [None, [], {}, True, 5, -1, 1e308, 10**30, "x", "", [[]], {"a": [1]}]
INVALID = [
    (b"", "invalid JSON"),
    (b'{"a": NaN}', "invalid JSON"),
    (b'{"a": 1e999}', "invalid JSON"),
    (b'{"a": 1, "b": {"c": 2, "c": 3}}', "invalid JSON .the key 'c' comes twice"),
    (b"[" * 100_000, "invalid JSON .nested too deeply"),
    (b'{"a": "\\ud800"}', "invalid JSON"),
    (b'{"a": "\xff"}', "invalid JSON"),
    (b'{"a": 1} x', "invalid JSON"),
]


@pytest.mark.parametrize(("content", "said"), INVALID)
def test_what_is_no_strict_json_is_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ArtifactError, match=rf"a\.json: {said}") as caught:
        read_json(tmp_path / "a.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("read", [read_json, read_bytes, sha256])
def test_a_pipe_a_device_or_a_folder_is_refused_at_once(tmp_path, read) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for name, said in (("pipe", "never end"), ("device", "never end"), ("folder", "directory")):
        with pytest.raises(ArtifactError, match=rf"{name}: .*{said}"):
            read(tmp_path / name)
    with pytest.raises(ArtifactError, match="never end"):
        copy_file(tmp_path / "pipe", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    # nor are more bytes read than are allowed
    (tmp_path / "a").write_bytes(b"12345")
    assert read_bytes(tmp_path / "a", 5) == b"12345"
    with pytest.raises(ArtifactError, match=r"a: 5 bytes, more than 4 are not read"):
        read_bytes(tmp_path / "a", 4)


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every value in a document."""
    yield place
    if isinstance(value, dict | list):
        entries = value if isinstance(value, dict) else dict(enumerate(value[:3]))
        for key, one in entries.items():
            yield from places(one, (*place, key))


def changed(document: Any, draw: random.Random) -> Any:
    """The document with one value replaced, or one key or entry left out."""
    document = deepcopy(document)
    place = draw.choice(list(places(document)))
    if not place:
        return draw.choice(OTHERS)
    *above, last = place
    owner = document
    for key in above:
        owner = owner[key]
    if draw.random() < 0.3:
        del owner[last]
    else:
        owner[last] = draw.choice(OTHERS)
    return document


def is_refused(read: Callable[[Path], object], path: Path) -> bool:
    """Whether the file is refused, with one line that names it."""
    try:
        read(path)
    except WorkFailed:
        return True  # a status of `failed` is a failure
    except TightropeError as error:
        assert path.name in str(error)
        assert "\n" not in str(error)
        return True
    return False


TRIAL = {
    **{"in_float": ["a"], "delta": 0.0, "delta_low": -0.1, "delta_high": 0.1, "flips": 1},
    **{"smoothquant": 0.5, "verdict": "kept", "seconds": 1.0},
}
EFFECTS = {"a": {"agreement": 1.0, "logit_error": 0.1, "kl": 0.1, "sqnr_db": 20.0}}
FOUND = {
    **{"in_float": ["a"], "smoothquant": 0.5, "operators": 3, "samples": 8, "seconds": 1.0},
    **{"budget_points": 1.0, "sensitivity": {"samples": 8, "operators": EFFECTS}},
    "trials": [TRIAL],
}
COSTS = {"host": "h", "operators": {"a": [{"batch": 1, "sequence": 8, "float_s": 1, "int8_s": 1}]}}


# by the file's name: its document, and the function of the pipeline that reads it
READERS: dict[str, Callable[[TinyModel], tuple[Any, Callable[[Path], object]]]] = {
    "data.json": lambda tiny: manifest_of(tiny.data, manifest_types.DataManifest),
    "checkpoint.json": lambda tiny: manifest_of(tiny.checkpoint, manifest_types.CheckpointManifest),
    "train.json": lambda tiny: manifest_of(tiny.split("train"), manifest_types.SplitManifest),
    "cache.json": lambda tiny: (
        json.loads(tiny.minmax.read_text()),
        lambda path: read_cache(path, model=tiny.simplified),
    ),
    "m/graphs/simplified.json": lambda tiny: (
        describe(load_onnx(tiny.simplified).graph),
        lambda path: graphs_section([path], path.with_name("page.html")),
    ),
    "search.json": lambda tiny: (FOUND, lambda path: read_json(path, manifest_types.Found)),
    "costs.json": lambda tiny: (COSTS, partial(describe_with_costs, tiny)),
    "job_seconds.json": lambda tiny: ({"a b": 1.5}, Seconds),
    "summary.json": lambda tiny: (json.loads(SUMMARY.read_text()), read_reported),
}


def manifest_of(file: Path, kind: Any) -> tuple[Any, Callable[[Path], object]]:
    return json.loads(file.read_text()), lambda path: open_manifest(path, kind)


def describe_with_costs(tiny: TinyModel, path: Path) -> object:
    return describe(load_onnx(tiny.simplified).graph, read_json(path, manifest_types.Costs))


@pytest.mark.parametrize("name", READERS)
def test_an_artifact_with_any_value_changed_is_read_or_refused_in_one_line(tiny, tmp_path, name):
    document, read = READERS[name](tiny)
    draw = random.Random(name)
    assert not is_refused(read, written(tmp_path / name, document))
    refused = [
        is_refused(read, written(tmp_path / name, changed(document, draw))) for _ in range(40)
    ]
    assert sum(refused) >= (0 if name == "job_seconds.json" else 5)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        *(
            ("train", {"rows": rows}, r"train\.json: .*delete it and run again")
            for rows in ([], [0, 5], [0, 5, 0], [0, 10**9, 1], [-3, 5, 1])
        ),
        ("evaluation", {}, r"evaluation\.json: the split train, not evaluation; delete it and run"),
    ],
)
def test_rows_that_a_split_cannot_have_are_refused(tiny, tmp_path, name, changes, said) -> None:
    document = json.loads(tiny.split("train").read_text())
    examples = (tiny.split("train").parent / document["file"]).read_bytes()
    (tmp_path / "pool.jsonl").write_bytes(examples)
    path = written(tmp_path / f"splits/{name}.json", {**document, **changes})
    with pytest.raises(ArtifactError, match=said):
        read_split(path)
    if name == "evaluation":
        with pytest.raises(ArtifactError, match=said):
            data_entry({name: path})


def test_a_changed_summary_is_rendered_or_refused_in_one_line(tmp_path, monkeypatch) -> None:
    """One of another schema is refused; of those with any value changed one that can be read."""
    # it takes most of the time of a page
    monkeypatch.setattr(html, "chart_library", lambda: "")
    path, target = tmp_path / "summary.json", tmp_path / "summary.html"
    render = partial(render_page, target=target, **PARTS)
    document, draw = json.loads(SUMMARY.read_text()), random.Random(3)
    assert is_refused(render, written(path, {**document, "schema": 99}))
    assert not target.exists()
    changes = (written(path, changed(document, draw)) for _ in range(60))
    is_refused(render, next(one for one in changes if not is_refused(read_reported, one)))

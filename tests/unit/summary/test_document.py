"""The types of summary.json: its JSON Schema, and what is refused."""

import runpy
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from artifact_files import written
from report_pages import empty
from tightrope.errors import ArtifactError
from tightrope.summary.document import Summary, read_summary

TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools/summary_schema.py"))
SCHEMA = TOOL["json_schema"]()
EMPTY = empty(Summary)
PICK = {
    **{"model": "m", "host": "a", "shape": {"batch": 1, "sequence": 64}},
    **{"variant": None, "why": {"code": "not_run"}},
    **{key: [] for key in ("equal", "open", "disturbed", "undecided")},
    "provisional": False,
    "rejected": [{"variant": "cpu-pytorch-fp32", "reason": {"code": "unmeasured"}}],
}


def read(folder: Path, document: Any) -> Any:
    return read_summary(written(folder / "summary.json", document))


def test_the_schema_is_valid_and_takes_a_summary() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate({**EMPTY, "recommendations": [PICK]}, SCHEMA)


def test_every_object_and_every_field_is_described() -> None:
    for kind in SCHEMA["$defs"].values():
        for part in (kind, *kind["properties"].values()):
            assert len(part["description"]) > 3, kind["title"]


def test_a_field_without_a_description_is_named(tmp_path, monkeypatch) -> None:
    text = (
        'class Plain(Struct):\n    """A thing."""\n    n: int\n    """So."""\n    forgotten: int\n'
    )
    (tmp_path / "plain.py").write_text(f"from msgspec import Struct\n{text}")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit, match=r"plain\.Plain: say below forgotten what it is"):
        TOOL["described"](import_module("plain").Plain)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"schema": 1}, "schema"),
        ({"recommendations": [{**PICK, "why": None}]}, "why"),
        ({"recommendations": [{**PICK, "shape": {"batch": "one"}}]}, "shape"),
        ({"goal": {"minimize": "size"}}, "goal"),
        ({"accuracy_budget_points": "one"}, "accuracy_budget_points"),
    ],
)
def test_a_wrong_field_is_named_and_the_schema_refuses_it_too(change, where, tmp_path):
    document = {**EMPTY, **change}
    with pytest.raises(ArtifactError, match=rf"summary\.json: no summary .*{where}.*run again"):
        read(tmp_path, document)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(document)


def test_every_part_is_required_and_a_broken_file_is_named(tmp_path: Path) -> None:
    for missing in EMPTY:
        with pytest.raises(ArtifactError, match=missing):
            read(tmp_path, {name: value for name, value in EMPTY.items() if name != missing})
    (tmp_path / "summary.json").write_text('{"schema": 7,')
    with pytest.raises(ArtifactError, match=r"summary\.json: without a digest of its content"):
        read_summary(tmp_path / "summary.json")

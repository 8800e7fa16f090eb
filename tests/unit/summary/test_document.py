"""The types of summary.json: its JSON Schema in docs/, and what is refused."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from artifact_files import written
from tightrope.errors import ArtifactError
from tightrope.summary.document import json_schema, read_summary

ROOT = Path(__file__).parents[3]
EMPTY = {
    **{"schema": 6, "tightrope": "0.1.0", "created": "2026-11-23T12:00:00+00:00"},
    **{"configuration": ["config/config.yaml"], "overrides": [], "accuracy_budget_points": 1.0},
    **{"studies": {}, "code": {}, "hosts": {}, "models": {}, "goal": None},
    **{key: [] for key in ("results", "recommendations", "races", "quantization", "goals")},
    **{key: [] for key in ("profiles", "explanations", "costs")},
    **{key: [] for key in ("causes", "training", "activations", "families")},
}
PICK = {
    **{"model": "m", "host": "a", "shape": {"batch": 1, "sequence": 64}},
    **{"variant": None, "why": "the race was not run"},
    **{key: [] for key in ("equal", "open", "disturbed", "undecided")},
    "provisional": False,
    "rejected": [{"variant": "cpu-pytorch-fp32", "reason": "slower"}],
}


def read(folder: Path, document: Any) -> Any:
    return read_summary(written(folder / "summary.json", document))


SCHEMA = json_schema()


def test_the_schema_in_the_documentation_is_that_of_the_types() -> None:
    written = json.loads((ROOT / "docs/summary.schema.json").read_text())
    assert written == SCHEMA, "run `make schema`"
    jsonschema.Draft202012Validator.check_schema(written)
    jsonschema.validate({**EMPTY, "recommendations": [PICK]}, SCHEMA)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"schema": 1}, "schema"),
        ({"recommendations": [{**PICK, "why": None}]}, "why"),
        ({"recommendations": [{**PICK, "shape": {"sequence": 64}}]}, "shape"),
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
    (tmp_path / "summary.json").write_text('{"schema": 6,')
    with pytest.raises(ArtifactError, match=r"summary\.json: without a digest of its content"):
        read_summary(tmp_path / "summary.json")

"""summary.json as a type: its entries, its JSON Schema, reading it with checks.

docs/summary-json.md describes the fields. Times are in seconds, sizes in bytes, accuracies are
fractions; None means not known.
"""

import json
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec

from tightrope.artifacts.files import read_bytes, write_json
from tightrope.errors import ArtifactError
from tightrope.summary.builds_types import Builds
from tightrope.summary.cascade_types import Cascade
from tightrope.summary.causes_types import Causes
from tightrope.summary.compression_types import CompressionSearch
from tightrope.summary.decision_types import Quantization, Race, Recommendation
from tightrope.summary.family_types import Family
from tightrope.summary.goal_types import Cost, Goal, GoalDecision
from tightrope.summary.idleness_types import Idleness
from tightrope.summary.model_types import Host, Model
from tightrope.summary.profile_types import Explanation, Profile
from tightrope.summary.result_types import Result
from tightrope.summary.throughput_types import Throughput
from tightrope.summary.workload_types import Activation, Traffic, Training


class About(TypedDict):
    """What wrote the summary, when, and from which configuration."""

    schema: Literal[3]
    tightrope: str
    created: str
    configuration: list[str]
    overrides: list[str]
    accuracy_budget_points: float


class Summary(About):
    """summary.json."""

    hosts: dict[str, Host]
    models: dict[str, Model]
    results: list[Result]
    recommendations: list[Recommendation]
    races: list[Race]
    quantization: list[Quantization]
    traffic: list[Traffic]
    throughput: list[Throughput]
    profiles: list[Profile]
    explanations: list[Explanation]
    idleness: list[Idleness]
    builds: list[Builds]
    causes: list[Causes]
    training: list[Training]
    cascades: list[Cascade]
    activations: list[Activation]
    families: list[Family]
    compressions: list[CompressionSearch]
    goal: Goal | None
    goals: list[GoalDecision]
    costs: list[Cost]


def write_summary(path: Path | str, summary: Summary) -> None:
    """Write summary.json; raise msgspec.ValidationError if a field is not of its type."""
    msgspec.json.decode(json.dumps(summary), type=Summary)
    write_json(path, summary)


def read_summary(path: Path | str) -> Summary:
    """Return summary.json with its types checked; raise ArtifactError naming the wrong field."""
    content = read_bytes(path)
    try:
        return msgspec.json.decode(content, type=Summary)
    except msgspec.DecodeError as error:
        raise ArtifactError(f"{path}: no summary of this version: {error}; run again") from error


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of summary.json."""
    schema = msgspec.json.schema(Summary)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": "Tightrope's reports/summary.json", **schema}

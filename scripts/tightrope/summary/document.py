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
from tightrope.summary.result_types import AccuracyVerdict, Ratio, Result, Shape
from tightrope.summary.workload_types import Activation, Traffic, Training

QuantizeVerdict = Literal["quantize", "undecided", "do not quantize"]


class Host(TypedDict):
    """Machine on which something was measured, and the libraries used on it."""

    cpu: str
    isa: list[str]
    cores: int
    memory_bytes: int | None
    gpu: str | None
    driver: str | None
    python: str
    libraries: dict[str, str | None]


class OperatorSensitivity(TypedDict):
    """Effect on the logits of quantizing one operator, all others in float."""

    operator: str
    agreement: float
    logit_error: float | None
    kl: float
    sqnr_db: float | None


class Sensitivity(TypedDict):
    """Operators of a model under one scheme and calibration, the highest `kl` first."""

    samples: int
    operators: list[OperatorSensitivity]


class Model(TypedDict):
    """A model with its data; `data` has the source and the samples of each split."""

    task: str
    activation: str | None
    parameters: int
    checkpoint_sha256: str
    labels: list[str] | None
    data: dict[str, str | int | None]
    baselines: dict[str, str]
    sensitivity: dict[str, Sensitivity]


class Rejected(TypedDict):
    """A variant that is not recommended."""

    variant: str
    reason: str


class Recommendation(TypedDict):
    """Which variant to deploy at a shape, None if none qualifies."""

    model: str
    host: str
    shape: Shape
    variant: str | None
    why: str
    equal: list[str]
    open: list[str]
    disturbed: list[str]
    provisional: bool
    rejected: list[Rejected]


class RaceRatio(Ratio):
    """How many times as fast `variant` is as `other`."""

    variant: str
    other: str


class Race(TypedDict):
    """Race of the finalists of a model on one device at one shape."""

    model: str
    host: str
    device: str
    shape: Shape
    status: Literal["decided", "disturbed", "failed"]
    variant: str | None
    fastest: str | None
    equal: list[str]
    open: list[str]
    within: float
    provisional: bool
    reason: str | None
    raced: list[str]
    left_out: dict[str, str]
    out: dict[str, str]
    rounds: int
    heats: int
    stop: str | None
    ratios: list[RaceRatio]


class QuantizedAccuracy(TypedDict):
    """Change of accuracy from the baseline."""

    delta: float | None
    delta_low: float | None
    delta_high: float | None
    flips: int | None
    samples: int
    verdict: AccuracyVerdict


class QuantizedVariant(TypedDict):
    """Whether a quantized variant is worth it, paired with the engine's best float variant."""

    variant: str
    verdict: QuantizeVerdict
    why: list[str]
    failed: str | None
    speedup: Ratio | None
    accuracy: QuantizedAccuracy | None


class Quantization(QuantizedVariant):
    """Whether to quantize an engine at one shape; the fields are those of its best variant."""

    model: str
    host: str
    device: str
    engine: str
    shape: Shape
    unquantized: str
    others: list[QuantizedVariant]


class Summary(TypedDict):
    """summary.json."""

    schema: Literal[2]
    tightrope: str
    created: str
    accuracy_budget_points: float
    hosts: dict[str, Host]
    models: dict[str, Model]
    results: list[Result]
    recommendations: list[Recommendation]
    races: list[Race]
    quantization: list[Quantization]
    traffic: list[Traffic]
    training: list[Training]
    activations: list[Activation]


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

"""summary.json as a type, writing and reading it with checks, what failed.

`make schema` makes its JSON Schema and docs/summary-json.md of the types and the strings below
their fields. Times are in seconds, sizes in bytes, accuracies are fractions; None means not known.
"""

import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from tightrope.artifacts.content import checked, writing_artifact
from tightrope.artifacts.files import json_document, read_bytes, read_json
from tightrope.decide.bounds import Cost, Goal
from tightrope.decide.goal import GoalDecision
from tightrope.decide.quantize import Quantization
from tightrope.decide.race import Race
from tightrope.decide.recommend import Recommendation
from tightrope.decide.result import Entry, Result, StudyEntry
from tightrope.errors import ArtifactError
from tightrope.records.record import TRAINING
from tightrope.summary.families import Family
from tightrope.summary.models import Model
from tightrope.summary.pairs import Activation, Causes, Training
from tightrope.summary.profile import Explanation, Profile
from tightrope.summary.runs import Host

# made once: of thousands of entries each would make its own
SORTED = json.JSONEncoder(sort_keys=True, allow_nan=False, ensure_ascii=False)
# of profiles/default, for a run without --configfile
DEFAULT = ("config/config.yaml",)
SCHEMA: Literal[7] = 7


class Summary(Entry):
    """The whole document."""

    schema: Literal[7]
    """Of this version of the program."""
    tightrope: str
    """The version that wrote the file."""
    created: str
    """When, in UTC."""
    configuration: list[str]
    """Names of the configuration files."""
    overrides: list[str]
    """The values of `--config`, each as `key=value`, without `remeasure`, `retry_failed` and
    `strict`."""
    code: dict[str, str]
    """The digest of the code of each step, as `train_model`, or `build onnxruntime` of an
    engine."""
    accuracy_budget_points: float
    """How many a variant may lose."""
    hosts: dict[str, Host]
    """By fingerprint, or by the name that `host` or `hosts` of the configuration gives."""
    models: dict[str, Model]
    """By name."""
    results: list[Result]
    """One per model and variant."""
    recommendations: list[Recommendation]
    """One per measured `model`, `host` and `shape`."""
    races: list[Race]
    """One per `model`, `host`, `device` and `shape` whose finalists raced."""
    quantization: list[Quantization]
    """One per `model`, `host`, `device`, `engine` and `shape` with quantized and float variants."""
    profiles: list[Profile]
    """One per model and variant of `profile.variants` that can run here; else empty."""
    explanations: list[Explanation]
    """One per pair of profiled variants that is compared, and shape."""
    causes: list[Causes]
    """One per model and profiled variant with `explain: verify`; else empty."""
    training: list[Training]
    """One per model whose training was measured (`training.epochs`); else empty."""
    activations: list[Activation]
    """One per model and host, if a model differs from another only in `activation`; else empty."""
    families: list[Family]
    """One per model from which others start (`from`), host and device; else empty."""
    studies: dict[str, list[StudyEntry]]
    """By the name of the study, one per model and variant of its `variants` that can run here; else
    empty."""
    goal: Goal | None
    """None without one."""
    goals: list[GoalDecision]
    """One per model and host, and per shape if the goal names neither shape nor traffic; empty
    without a goal."""
    costs: list[Cost]
    """One per measured result and shape; empty without a goal and without prices."""


def write_summary(path: Path | str, summary: Summary) -> None:
    """Write summary.json; raise msgspec.ValidationError if a field is not of its type.

    The bytes are those of `write_artifact`. Entries of lists are checked and written one by one:
    of many variants the whole text takes more memory than the summary itself.
    """
    kinds = get_type_hints(Summary)
    with writing_artifact(path) as stream:
        for place, key in enumerate(sorted(kinds)):
            value, kind = getattr(summary, key), kinds[key]
            stream.write((b",\n " if place else b" ") + json.dumps(key).encode() + b": ")
            try:
                for text in texts_of(value, kind):
                    stream.write(text)
            except msgspec.ValidationError as error:
                raise msgspec.ValidationError(f"{key}: {error}") from error
        stream.write(b"\n}\n")


def texts_of(value: Any, kind: Any) -> Iterator[bytes]:
    """Yield the JSON of a field, of a list that of each entry."""
    if isinstance(value, list) and value:
        (kind,) = get_args(kind)
        for index, entry in enumerate(value):
            yield (b",\n  " if index else b"[\n  ") + text_of(entry, kind, depth=2)
        yield b"\n ]"
    else:
        yield text_of(value, kind, depth=1)


def text_of(value: Any, kind: Any, *, depth: int) -> bytes:
    """Return a value as sorted JSON with a line per value, indented as at that depth of a document.

    Raises msgspec.ValidationError if it is not of this type, ValueError for NaN or infinity.
    """
    text = SORTED.encode(msgspec.to_builtins(value)).encode()
    msgspec.json.decode(text, type=kind)
    return msgspec.json.format(text, indent=1).replace(b"\n", b"\n" + b" " * depth)


def read_summary(path: Path | str) -> Summary:
    """Return summary.json with its types checked; raise ArtifactError naming the wrong field."""
    content = checked(path, read_bytes(path))
    try:
        return msgspec.json.decode(content, type=Summary)
    except msgspec.DecodeError as error:
        raise ArtifactError(f"{path}: no summary of this version: {error}; run again") from error


def read_reported(path: Path | str) -> Summary:
    """Return summary.json for the page, which need not have a digest of its content.

    Raises ArtifactError for another schema, and for a field that is missing or of another type.
    """
    content = checked(path, read_bytes(path), of_any_version=True)
    known: Summary = msgspec.convert(json_document(path, content, Summary), Summary)
    return known


def remeasure_command(summary: Summary) -> str:
    """Return the command that measures again what was disturbed, with the run's configuration."""
    return command(summary, overrides=["remeasure=disturbed"])


def bundle_command(summary: Summary, model: str, variant: str) -> str:
    """Return the command that bundles a variant, with the run's configuration."""
    return command(summary, [f"artifacts/{model}/bundle/{variant}.tar.gz"])


def command(summary: Summary, targets: Sequence[str] = (), *, overrides: Sequence[str] = ()) -> str:
    """Return a command line of Snakemake with the run's configuration and more overrides.

    Targets come first: after --configfile they would be taken for more of its files.
    """
    files = tuple(summary.configuration or DEFAULT)
    words = ["snakemake", "--cores", "1", *targets]
    words += [] if files == DEFAULT else ["--configfile", *files]
    values = [*summary.overrides, *overrides]
    return shlex.join([*words, *(["--config", *values] if values else [])])


def disturbed(summary: Summary) -> dict[str, list[tuple[str, bool]]]:
    """Return why other load disturbed each measurement, and whether its numbers are provisional.

    They are by kind: `latencies`, `races`, `families`, `training`, and each study.
    """
    kinds: dict[str, Iterable[Any]] = {
        "latencies": (row for one in summary.results for row in one.latency),
        "families": (shape for one in summary.families for shape in one.shapes),
        "training": summary.training,
    }
    told = {kind: [(one.disturbed, one.provisional) for one in own] for kind, own in kinds.items()}
    told["races"] = [(race.reason, race.provisional) for race in summary.races]
    for study, entries in summary.studies.items():
        rows = (row for entry in entries for row in entry.rows)
        told[study] = [(row["disturbed"], row["provisional"]) for row in rows]
    return {kind: [one for one in found if one[0]] for kind, found in told.items()}


class Outcome(msgspec.Struct):
    """What an entry of a result or of a measured training says of its failure."""

    model: str
    status: str
    reason: str | None = None
    variant: str = TRAINING


class Outcomes(msgspec.Struct):
    """What of summary.json can have failed, whatever version wrote it."""

    results: list[Outcome]
    training: list[Outcome] = []


def failures(summary: Summary | Outcomes) -> dict[str, str | None]:
    """Return the reasons of results and measured trainings that failed, by model and variant."""
    return {
        f"{one.model}/{getattr(one, 'variant', TRAINING)}": one.reason
        for one in (*summary.results, *summary.training)
        if one.status == "failed"
    }


def exit_with_failures(summary: Path) -> None:
    """End the process with exit code 1 where a variant of `summary` failed."""
    try:
        known = read_json(summary, Outcomes) if summary.is_file() else {"results": []}
        found = failures(msgspec.convert(known, Outcomes))
        failed = [f"{name}: {reason}" for name, reason in found.items()]
    except ArtifactError as error:
        failed = [str(error)]
    if failed:
        print(f"strict: {len(failed)} failed: " + "; ".join(failed), file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)

"""Reading of summary.json for a comparison: of any folder, with its types checked."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from tightrope.artifacts.content import checked
from tightrope.artifacts.files import read_bytes, strict_json
from tightrope.decide.result import LatencyRow, Result, Shape, interval_of
from tightrope.errors import ArtifactError
from tightrope.summary.document import SCHEMA, Summary

# the largest summary of docs/results/operations.md, of 10,000 variants, has a tenth of that
LARGEST_BYTES = 2**30


class Key(NamedTuple):
    """A variant of a model."""

    model: str
    variant: str


class RowKey(NamedTuple):
    """A variant of a model at a shape."""

    key: Key
    shape: Shape


@dataclass(frozen=True)
class Report:
    """A summary and where it is; `stored_as` is the name of a variant's files if it is another."""

    path: Path
    document: Summary
    stored_as: Mapping[Key, str] = field(default_factory=dict)

    @cached_property
    def results(self) -> dict[Key, Result]:
        """The results by model and variant."""
        return {Key(one.model, one.variant): one for one in self.document.results}

    @cached_property
    def rows(self) -> dict[RowKey, LatencyRow]:
        """The rows of latency by model, variant and shape."""
        results = self.results.items()
        return {RowKey(key, row.shape): row for key, one in results for row in one.latency}

    @cached_property
    def ok(self) -> set[Key]:
        """The variants that have a result."""
        return {key for key, result in self.results.items() if result.status == "ok"}


def read_report(path: Path | str) -> Report:
    """Return the summary in `path`, of this folder or another.

    Raises ArtifactError, naming the field, for a file that is no summary, is cut off, holds NaN, is
    of another version, names a variant twice, or has an impossible speed-up.
    """
    try:
        content = read_bytes(path, LARGEST_BYTES)
        document = strict_json(checked(path, content, of_any_version=True))
        if isinstance(document, dict) and document.get("schema") != SCHEMA:
            found = document.get("schema", "none")
            read = f"{SCHEMA} is read; make its report again with this version"
            raise ValueError(f"its schema is {str(found)[:40]}, {read}")
        summary = msgspec.convert(document, Summary)
        seen: set[str] = set()
        for result in summary.results:
            name = f"{result.model}/{result.variant}"
            if name in seen:
                raise ValueError(f"results has {name} twice")
            seen.add(name)
            for row in result.latency:
                value, low, high = interval_of(row.speedup) or (1, 1, 1)
                if not (0 <= low <= value <= high < math.inf and value > 0):
                    raise ValueError(f"{name} has a speed-up of {value} from {low} to {high}")
    except ValueError as error:  # msgspec's errors of types are of this kind too
        raise ArtifactError(f"{path}: no summary to compare: {error}") from error
    return Report(Path(path), summary)


def with_calibrations_of(new: Report, old: Report) -> Report:
    """Return the old report with its variants named as those of the new one.

    That is where the calibration alone differs, and there is one of each.
    """
    groups: dict[Any, tuple[list[Key], list[Key]]] = defaultdict(lambda: ([], []))
    for place, (report, other) in enumerate(((old, new), (new, old))):
        for key, one in report.results.items():
            if one.calibration and key not in other.results:
                device = one.variant.partition("-")[0]  # with the name of a host
                kind = key.model, device, one.device, one.engine, one.precision
                groups[kind][place].append(key)
    pairs = [ones for ones in groups.values() if len(ones[0]) == len(ones[1]) == 1]
    renamed = {before: after.variant for (before,), (after,) in pairs}

    def named(entry: Any) -> Any:
        name = entry.variant
        return replace(entry, variant=renamed.get(Key(entry.model, name), name))

    document = replace(
        old.document,
        results=[named(one) for one in old.document.results],
        recommendations=[named(one) for one in old.document.recommendations],
    )
    stored = {Key(key.model, name): key.variant for key, name in renamed.items()}
    return Report(old.path, document, stored)

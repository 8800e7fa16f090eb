"""Reading of summary.json for a comparison: of any folder, with its types checked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tightrope.artifacts.content import checked
from tightrope.artifacts.files import read_bytes, strict_json
from tightrope.errors import ArtifactError
from tightrope.report.style.numbers import shape_of
from tightrope.summary.document import Summary, partial_type

SCHEMA = 3
# the largest summary of docs/results/operations.md, of 10,000 variants, has a tenth of that
LARGEST_BYTES = 2**30
NEEDED = {"created": str, "hosts": dict, "models": dict, "results": list}
NAMES = ("model", "variant", "status")

Entry = Mapping[str, Any]
Shape = tuple[tuple[str, int], ...]


class Key(NamedTuple):
    """A variant of a model."""

    model: str
    variant: str


class RowKey(NamedTuple):
    """A variant of a model at a shape."""

    model: str
    variant: str
    shape: Shape

    @property
    def key(self) -> Key:
        """The variant."""
        return Key(self.model, self.variant)


@dataclass(frozen=True)
class Report:
    """A summary and where it is; `document` is a Summary in which fields may be missing."""

    path: Path
    document: dict[str, Any]

    @property
    def created(self) -> str:
        """When it was made, as an ISO date and time in UTC."""
        return str(self.document["created"])

    @cached_property
    def results(self) -> dict[Key, Entry]:
        """The results by model and variant."""
        return {Key(one["model"], one["variant"]): one for one in self.document["results"]}

    @cached_property
    def rows(self) -> dict[RowKey, Entry]:
        """The rows of latency by model, variant and shape."""
        return {
            RowKey(*key, shape_of(row)): row
            for key, result in self.results.items()
            for row in result.get("latency") or ()
        }

    def model(self, name: str) -> Entry:
        """Return the entry of a model, empty if there is none."""
        return self.document["models"].get(name) or {}

    def host_of(self, key: Key) -> Entry | None:
        """Return the entry of the host that measured a variant, None where nothing did."""
        result = self.results[key]
        known: Entry | None = self.document["hosts"].get(result.get("host"))
        return known if result["status"] == "ok" else None


def read_report(path: Path | str) -> Report:
    """Return the summary in `path`, of this folder or another, and of any version.

    Fields that an earlier version of the schema does not have may be missing. Raises ArtifactError,
    naming the field, for a file that is no summary, is cut off, holds NaN, has another schema or
    a field of another type, names a variant twice, or has an impossible speed-up.
    """
    try:
        content = read_bytes(path, LARGEST_BYTES)
        document = strict_json(checked(path, content, of_any_version=True))
        if isinstance(document, dict) and document.get("schema") != SCHEMA:
            found = document.get("schema", "none")
            raise ValueError(f"its schema is {str(found)[:40]}, {SCHEMA} is read")
        msgspec.convert(document, partial_type(Summary))
        require_fields(document)
    except ValueError as error:  # msgspec's errors of types are of this kind too
        raise ArtifactError(f"{path}: no summary to compare: {error}") from error
    return Report(Path(path), document)


def with_calibrations_of(new: Report, old: Report) -> Report:
    """Return the old report with its variants named as those of the new one.

    That is where the calibration alone differs, and there is one of each. `stored_as` is then the
    name of a variant's files.
    """
    only = [
        [one for key, one in report.results.items() if key not in other.results]
        for report, other in ((old, new), (new, old))
    ]
    groups: dict[tuple[Any, ...], tuple[list[Entry], list[Entry]]] = {}
    for place, results in enumerate(only):
        for one in results:
            facts = [one.get(name) for name in ("model", "device", "engine", "precision")]
            kind = (*facts, one["variant"].partition("-")[0])  # with the name of a host
            if one.get("calibration"):
                groups.setdefault(kind, ([], []))[place].append(one)
    renamed = {
        Key(before[0]["model"], before[0]["variant"]): after[0]["variant"]
        for before, after in groups.values()
        if len(before) == len(after) == 1
    }
    results = [
        {**one, "variant": renamed[key], "stored_as": key.variant} if key in renamed else one
        for key, one in old.results.items()
    ]
    chosen = [
        {**one, "variant": renamed.get(Key(one.get("model", ""), str(name)), name)}
        for one in old.document.get("recommendations") or ()
        for name in [one.get("variant")]
    ]
    document = {**old.document, "results": results, "recommendations": chosen}
    return Report(old.path, document)


def require_fields(document: dict[str, Any]) -> None:
    """Raise ValueError where a field is missing without which nothing can be compared."""
    for name in NEEDED:
        if name not in document:
            raise ValueError(f"it has no {name}")
    seen = set()
    for place, result in enumerate(document["results"]):
        for name in NAMES:
            if name not in result:
                raise ValueError(f"results[{place}] has no {name}")
        key = result["model"], result["variant"]
        if key in seen:
            raise ValueError(f"results has {'/'.join(key)} twice")
        seen.add(key)
        for row in result.get("latency") or ():
            require_ratio(row.get("speedup") or {}, "/".join(key))


def require_ratio(speedup: Entry, where: str) -> None:
    """Raise ValueError unless a speed-up with an interval is positive and inside it."""
    low, ratio, high = (speedup.get(name) for name in ("low", "ratio", "high"))
    if low is None or ratio is None or high is None:
        return
    if not (0 <= low <= ratio <= high < math.inf and ratio > 0):
        raise ValueError(f"{where} has a speed-up of {ratio} from {low} to {high}")

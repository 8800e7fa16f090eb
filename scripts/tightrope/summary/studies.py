"""Entries of studies in summary.json. Times are in seconds; None means not known."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from tightrope.studies.study import Study, StudyRecord
from tightrope.studies.table import STUDIES
from tightrope.summary.measured import Measured, measured_entry
from tightrope.summary.own_records import Engines, require_own


class StudyEntry(Measured):
    """What a study found of a variant: rows, of which each study has its own fields.

    `shape` is what all inputs have in common, `words` are sentences on all rows, `spent_s` the
    seconds of all calls with loads.
    """

    shape: dict[str, int]
    threads: int
    spent_s: float
    words: list[str]
    rows: list[dict[str, Any]]


def read_studies(paths: Iterable[Path | str], in_use: Engines) -> dict[str, list[StudyRecord]]:
    """Return the records `reports/{model}/{variant}.{study}.json`, by study.

    Raises ArtifactError as `Record.read` and `require_own` do.
    """
    found: dict[str, list[StudyRecord]] = {name: [] for name in STUDIES}
    for path in paths:
        name = Path(path).name.split(".")[-2]
        record = STUDIES[name].read(path)
        require_own(path, record, in_use)
        found[name].append(record)
    return found


def study_entry(study: Study, record: StudyRecord, *, accept_disturbed: bool = False) -> StudyEntry:
    """Return the entry of a record; a failed one has no rows.

    A part of which other load left too little has no numbers; with `accept_disturbed` it has, and
    is `provisional`.
    """
    rows = study.rows(record, accept_disturbed) if record.status == "ok" else []
    return {
        **measured_entry(record),
        "shape": record.shape,
        "threads": record.threads,
        "spent_s": record.spent_s,
        "words": [*study.words(rows)] if rows else [],
        "rows": msgspec.to_builtins(rows),
    }

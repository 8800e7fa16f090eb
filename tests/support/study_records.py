"""Records of studies with planted calls, their rows, and the page that shows them."""

from typing import Any

from msgspec.structs import replace
from raced import HOST
from report_pages import MODEL, page
from tightrope.decide.result import StudyEntry
from tightrope.studies.study import StudyRecord
from tightrope.studies.table import STUDIES
from tightrope.summary.runs import study_entry

SEQUENCE = {"sequence": 64}


def study_record(study: str, calls: list[Any], settings: Any, **changes: Any) -> StudyRecord:
    """A record of a variant on two processors."""
    known = {"model": MODEL, "variant": "cpu-onnxruntime-fp32", "host": HOST, "libraries": {}}
    known |= {"threads": 2, "processors": [0, 1], "shape": SEQUENCE}
    return StudyRecord(**{**known, **changes}, study=study, settings=settings, calls=calls)


def entry_of(record: StudyRecord, *, accept_disturbed: bool = False) -> StudyEntry:
    """Its entry in summary.json."""
    return study_entry(STUDIES[record.study], record, accept_disturbed=accept_disturbed)


def study_page(*records: StudyRecord, accept_disturbed: bool = False) -> Any:
    """The page on these records."""
    studies: dict[str, Any] = {}
    for one in records:
        entry = entry_of(one, accept_disturbed=accept_disturbed)
        studies.setdefault(one.study, []).append(replace(entry, host="h"))
    return page(studies=studies)

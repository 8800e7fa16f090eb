"""Write the files on an ONNX graph: its record, and ONNX without weights for Netron."""

from functools import partial
from pathlib import Path
from typing import Any

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.failures import read_json_or_raise, write_failure
from tightrope.artifacts.files import write_bytes
from tightrope.artifacts.manifest_types import Costs
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, failure, supervised
from tightrope.onnx.file import load_onnx
from tightrope.report.graphs.describe import describe
from tightrope.report.graphs.without_weights import without_weights


def describe_graph(
    source: Path | str,
    costs: Path | str | None,
    record: Path | str,
    structure: Path | str,
    *,
    title: str,
    limits: Limits,
) -> None:
    """Write JSON and weightless ONNX that describe the ONNX file `source`.

    `costs` of its operators give the time shares. If `source` holds a failure or cannot be read,
    both files state why. Raises ArtifactError for an unreadable file, and TightropeError if a
    failure is transient and another attempt is left.
    """
    try:
        work = partial(write, source, costs, record, structure, title=title)
        supervised(work, limits=limits)
    except WorkFailed as error:
        details = failure(error, str(record), limits)
        reason, transient = details["reason"], details["transient"]
        write_failure(structure, reason=reason, transient=transient)
        write_failure(record, reason=reason, transient=transient)


def write(
    source: Path | str,
    costs: Path | str | None,
    record: Path | str,
    structure: Path | str,
    *,
    title: str,
) -> None:
    """Do the work of `describe_graph` in its child process; write the record last."""
    model = without_weights(load_onnx(source), f"{title}: the structure, weights are left out")
    document = describe(model.graph, read_costs(costs))
    write_bytes(structure, model.SerializeToString(deterministic=True))
    write_artifact(record, document)


def read_costs(path: Path | str | None) -> Any:
    """Read the costs, None without a file or if they could not be measured."""
    try:
        return read_json_or_raise(path, Costs) if path else None
    except WorkFailed:
        return None

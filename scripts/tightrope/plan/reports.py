"""Reports across runs: written again if a record is missing, and kept per configuration."""

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from tightrope.artifacts.files import file_state, read_bytes, read_json, write_bytes
from tightrope.errors import ArtifactError, StorageError
from tightrope.records.record import TRAINING
from tightrope.variants import place_of

REPORTS = [Path(f"reports/summary.{suffix}") for suffix in ("json", "csv", "html")]
KEPT = Path("reports/configurations")
# keys of --config that say what to do now, not what to measure
OF_ONE_RUN = ("remeasure", "retry_failed", "strict")
# a quoted word or number that YAML reads in the same way without quotes
PLAIN = re.compile(r'"([A-Za-z0-9_.+-]+)"')
GENERATIONS = Path(".snakemake/tightrope")
# rules with a generation, see there
REPORTING = ("summarize", "render_report")
# the files of each (model, variant), each (model, TRAINING), and each (root, place) of a family
Records = dict[tuple[str, str], list[str]]


class Result(TypedDict):
    """Names of a result."""

    model: str
    variant: str


class Training(TypedDict):
    """Name of a measured training."""

    model: str


class Family(TypedDict):
    """Names of a family."""

    root: str
    device: str
    host: str


class Reported(TypedDict):
    """The names in summary.json."""

    results: list[Result]
    training: NotRequired[list[Training]]
    families: NotRequired[list[Family]]


def generation(
    rule: str,
    files: Iterable[Path | str],
    *,
    persist: bool,
    prefix: str = "",
    missing: bool = False,
) -> int:
    """Return a number that grows when one of the files that the rule reports is missing.

    Or with `missing`, where files elsewhere are.

    As a param of the rule it makes the run report again: Snakemake does not rebuild a missing
    intermediate file while its target exists and is current. A run has to `persist` the number, a
    dry run must not. Of a module with a prefix it is below that prefix.
    """
    state = GENERATIONS / prefix / f"{rule}.generation"
    number = number_in(state)
    if missing or not are_there(files):
        number += 1
        if persist:
            write_bytes(state, str(number).encode())
    return number


def are_there(files: Iterable[Path | str]) -> bool:
    """Return whether all files are there; each folder is listed once, no file is looked at."""
    folders: dict[str, set[str]] = {}
    for path in files:
        folder, name = os.path.split(path)
        folders.setdefault(folder or os.curdir, set()).add(name)
    return all(names <= files_in(folder) for folder, names in folders.items())


def files_in(folder: str) -> set[str]:
    """Return the names of the files in a folder, none where it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            return {one.name for one in entries if one.is_file()}
    except OSError:
        return set()


def number_in(state: Path) -> int:
    """Return the number that was persisted, 0 without one."""
    try:
        return int(state.read_text())
    except (OSError, ValueError):
        return 0


def report_again(rules: Iterable[str]) -> None:
    """Have the next run report again by those of the rules that report, which have failed.

    Snakemake restores the report that such a job was to replace, and takes it for what it made.
    """
    for state in (GENERATIONS / f"{rule}.generation" for rule in {*rules} & {*REPORTING}):
        with suppress(StorageError):  # the disk may be full, for which the job failed
            write_bytes(state, str(number_in(state) + 1).encode())


def summarized_files(records: Records, prefix: str = "") -> list[Path | str]:
    """Return the summaries, and the records of the variants and trainings that they show.

    They have the prefix of a module, and `records` have none.
    """
    summaries = [f"{prefix}{path}" for path in REPORTS[:-1]]
    reported = reported_records(Path(summaries[0]), records)
    return [*summaries, *(f"{prefix}{path}" for path in reported)]


def reported_records(summary: Path, records: Records) -> list[str]:
    """Return the records of variants, trainings and families with an entry in `summary`."""
    try:
        document = read_json(summary, Reported)
        known = [(result["model"], result["variant"]) for result in document["results"]]
        known += [(training["model"], TRAINING) for training in document.get("training", ())]
        known += [
            (family["root"], place)
            for family in document.get("families", ())
            for place in (family["device"], place_of(family["device"], family["host"]))
        ]
    except ArtifactError:
        return [path for paths in records.values() for path in paths]
    return [path for key in known for path in records.get(key, [])]


def configuration_files(workflow: Any) -> list[str]:
    """Return the configuration files of the run, relative to the project, else by their name.

    The place of the project is not among them, so that it does not make the summary stale.
    """
    found = (Path(file) for file in workflow.config_settings.configfiles)
    here = Path.cwd()
    return [
        file.relative_to(here).as_posix() if file.is_relative_to(here) else file.name
        for file in found
    ]


def overrides(workflow: Any) -> list[str]:
    """Return the values of --config as `key=value`, but those of OF_ONE_RUN."""
    given = workflow.config_settings.config or {}
    return [f"{key}={as_typed(given[key])}" for key in given if key not in OF_ONE_RUN]


def as_typed(value: Any) -> str:
    """Format a value as --config takes it: JSON, with quotes only where words need them.

    Snakemake reads every number of --config as a string, and the schema makes it a number again.
    """
    return PLAIN.sub(r"\1", json.dumps(value, ensure_ascii=False))


def keep_reports(workflow: Any, *, before: tuple[int, int] | None) -> Path | None:
    """Copy the reports of this run to the folder of its configuration; return that folder.

    The folder has the name of the configuration file, so that a run with another one leaves them.
    Returns None if the page is still as it was `before`, see `file_state`.
    """
    page = REPORTS[-1]
    if file_state(page) in (None, before):
        return None
    files = workflow.config_settings.configfiles
    folder = KEPT / (Path(files[-1]).stem if files else "config")
    for report in REPORTS:
        write_bytes(folder / report.name, read_bytes(report))
    return folder

"""Reports across runs: kept per configuration, which they name."""

import json
import os
import re
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import file_state, read_bytes, write_bytes

REPORTS = [Path(f"reports/summary.{suffix}") for suffix in ("json", "csv", "html")]
KEPT = Path("reports/configurations")
# keys of --config that say what to do now, not what to measure
OF_ONE_RUN = ("remeasure", "retry_failed", "strict")
# a quoted word or number that YAML reads in the same way without quotes
PLAIN, NAKED = re.compile(r'"([A-Za-z0-9_.+-]+)"'), r"\1"


def configuration_files(workflow: Any) -> list[str]:
    """Return the configuration files of the run, relative to the project, which may be moved."""
    return [os.path.relpath(file) for file in workflow.config_settings.configfiles]


def overrides(workflow: Any) -> list[str]:
    """Return the values of --config as `key=value`, but those of OF_ONE_RUN.

    As --config takes them, that is JSON with quotes only where words need them: Snakemake reads
    every number as a string, and the schema makes it a number again.
    """
    given = (workflow.config_settings.config or {}).items()
    written = ((key, json.dumps(value, ensure_ascii=False)) for key, value in given)
    return [f"{key}={PLAIN.sub(NAKED, text)}" for key, text in written if key not in OF_ONE_RUN]


def keep_reports(workflow: Any, *, before: tuple[int, int] | None) -> Path | None:
    """Copy the reports of this run to the folder of its configuration file; return that folder.

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

"""Commands that the report and the terminal advise."""

import shlex
from collections.abc import Mapping
from typing import Any

# of profiles/default, for a run without --configfile
DEFAULT = ("config/config.yaml",)


def remeasure_command(summary: Mapping[str, Any]) -> str:
    """Return the command that measures again what was disturbed, with the run's configuration."""
    files = tuple(summary.get("configuration") or DEFAULT)
    named = "" if files == DEFAULT else f" --configfile {shlex.join(files)}"
    values = [*(summary.get("overrides") or ()), "remeasure=disturbed"]
    return f"snakemake --cores 1{named} --config {shlex.join(values)}"

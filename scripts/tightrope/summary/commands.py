"""Commands that the report and the terminal advise."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

# of profiles/default, for a run without --configfile
DEFAULT = ("config/config.yaml",)


def remeasure_command(summary: Mapping[str, Any]) -> str:
    """Return the command that measures again what was disturbed, with the run's configuration."""
    return command(summary, overrides=["remeasure=disturbed"])


def bundle_command(summary: Mapping[str, Any], model: str, variant: str) -> str:
    """Return the command that bundles a variant, with the run's configuration."""
    return command(summary, [f"artifacts/{model}/bundle/{variant}.tar.gz"])


def command(
    summary: Mapping[str, Any], targets: Sequence[str] = (), *, overrides: Sequence[str] = ()
) -> str:
    """Return a command line of Snakemake with the run's configuration and more overrides.

    Targets come first: after --configfile they would be taken for more of its files.
    """
    files = tuple(summary.get("configuration") or DEFAULT)
    words = ["snakemake", "--cores", "1", *targets]
    words += [] if files == DEFAULT else ["--configfile", *files]
    values = [*(summary.get("overrides") or ()), *overrides]
    return shlex.join([*words, *(["--config", *values] if values else [])])

"""Commands that the report and the terminal advise."""

import shlex
from collections.abc import Sequence

# of profiles/default, for a run without --configfile
DEFAULT = ("config/config.yaml",)


def remeasure_command(configuration: Sequence[str] | None) -> str:
    """Return the command that measures what was disturbed again, with the files of the run.

    A summary does not hold the values of --config that the run had.
    """
    files = tuple(configuration or DEFAULT)
    named = "" if files == DEFAULT else f" --configfile {shlex.join(files)}"
    return f"snakemake --cores 1{named} --config remeasure=disturbed"

"""Why jobs of a run ended without their output: the run goes on to its report without them.

A scheduler, the kernel or an error may end a job before it writes its failure. The main process
keeps the reason here and starts Snakemake again, see `tightrope.plan.continuing`: such a job then
writes its failure in place of its work.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypedDict

from tightrope.artifacts.files import read_json, write_json
from tightrope.errors import ArtifactError

FILE = Path(".snakemake/tightrope/ended.json")
# environment variable: the process id of the run that goes on, empty in a run of its own
CONTINUES = "TIGHTROPE_CONTINUES"


class Kept(TypedDict):
    """What the file holds: reasons by output, and by model."""

    outputs: dict[str, str]
    models: dict[str, str]


@dataclass(frozen=True)
class Ended:
    """Reasons by output of a job, and by model whose data or checkpoint is missing for it."""

    outputs: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)

    def write(self) -> None:
        """Keep this for the processes of the run that goes on."""
        write_json(FILE, asdict(self))

    def with_more(self, outputs: Mapping[str, str], models: Mapping[str, str]) -> "Ended":
        """Return this with more reasons; the first one of an output or a model stays."""
        return Ended({**outputs, **self.outputs}, {**models, **self.models})


def continues() -> bool:
    """Return whether this process belongs to a run that goes on after jobs have ended."""
    return bool(os.environ.get(CONTINUES))


def kept() -> Ended:
    """Return what is kept of this folder's last run, nothing where the file cannot be read."""
    try:
        return Ended(**read_json(FILE, Kept))
    except ArtifactError:
        return Ended()


def keep_missing() -> None:
    """Keep of the last run only the outputs that are still missing, until they are made."""
    missing = {path: why for path, why in kept().outputs.items() if not Path(path).exists()}
    if missing:
        Ended(missing).write()
    else:
        FILE.unlink(missing_ok=True)


def known() -> Ended:
    """Return what has ended before in the run that goes on; nothing in a run of its own."""
    return kept() if continues() else Ended()


def reason_of(outputs: Iterable[str]) -> str | None:
    """Return why the job with these outputs has ended before, None where it has not."""
    reasons = known().outputs
    return next((reasons[path] for path in outputs if path in reasons), None)

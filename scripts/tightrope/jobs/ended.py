"""Why jobs of a run ended without their output: killed, lost with their node, by an error."""

import os
from pathlib import Path
from typing import Any

from tightrope.artifacts.files import read_json

# variable of the environment of a run that goes on to its report: the file of the reasons
CONTINUES = "TIGHTROPE_CONTINUES"


def known() -> dict[str, str]:
    """Return the reasons by output, and by model without data or checkpoint; none in a new run."""
    file = Path(os.environ.get(CONTINUES, ""))  # which a node may not have
    return read_json(file, dict[str, str]) if file.is_file() else {}


def reason_of(job: Any) -> str | None:
    """Return why a job has ended before: it then writes this in place of its work. Else None."""
    reasons, outputs = known(), (str(path) for _, path in job.output.items())
    return next((reasons[path] for path in outputs if path in reasons), None)

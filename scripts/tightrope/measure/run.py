"""What every record of a run of an engine holds besides its measurements."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.files import sha256
from tightrope.jobs.execution import Execution
from tightrope.machine.host import describe_host


def facts_of_run(engine: Path, execution: Execution) -> dict[str, Any]:
    """Return `host`, `libraries` and `engine_sha256` of a Record, for the engine.json `engine`."""
    return {
        "host": describe_host(),
        "libraries": execution.libraries,
        "engine_sha256": sha256(engine),
    }

"""What every record of a run of an engine holds besides its measurements."""

from pathlib import Path
from typing import Any

from tightrope.artifacts.descent import require_engine_of, require_model
from tightrope.artifacts.files import sha256
from tightrope.jobs.execution import Execution


def facts_of_run(
    engine: Path, checkpoint: Path, execution: Execution, *, model: str, variant: str
) -> dict[str, Any]:
    """Return what a Record holds of a run: names, `host`, `libraries` and `engine_sha256`.

    `engine` and `checkpoint` are manifests. Raises ArtifactError where they are not of this variant
    and model, or the engine was built from another checkpoint.
    """
    require_model(checkpoint, model)
    require_engine_of(engine, checkpoint, variant)
    return {
        "model": model,
        "variant": variant,
        "host": execution.host(),
        "libraries": execution.libraries,
        "engine_sha256": sha256(engine),
    }

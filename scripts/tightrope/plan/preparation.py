"""Files that are made between the ONNX file of a model and the engine of a variant."""

from typing import Any

from tightrope.plan.columns import Jobs
from tightrope.plan.job_inputs import int8_files


def prepared(
    config: dict[str, Any], jobs: Jobs, prefix: str = "", wildcards: Any = None
) -> dict[str, dict[str, list[str]]]:
    """Return these files per model and variant, in job order; none of a variant in float.

    Each has the prefix of a module. Without the search for int8-auto, which goes on where it ended
    and records its own seconds.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for model, variant in jobs:
        files = int8_files(config, model, variant)
        kept = [f"{prefix}{path}" for path in files if "/search/" not in path]
        found.setdefault(model, {})[str(variant)] = kept
    return found

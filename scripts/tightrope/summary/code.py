"""Digests of the code of each step, by which a comparison tells that the program has changed."""

from pathlib import Path

import tightrope
from tightrope.artifacts.provenance import code_digest
from tightrope.engine_table import ENGINES

SCRIPTS = Path(tightrope.__file__).parents[1]
# what decides answers and times; the steps of an engine have its `build` or `load` besides
STEPS = (
    "prepare_data",
    "split_data",
    "prepare_checkpoint",
    "train_model",
    "export_onnx",
    "simplify_onnx",
    "calibrate",
    "quantize_onnx",
    "search_operators",
    "race_finalists",
)
OF_ENGINES = {"build": "build_engine", "time": "measure_latency", "evaluate": "measure_accuracy"}


def step_digests(scripts: Path = SCRIPTS) -> dict[str, str]:
    """Return the digest of the code of each step: `train_model`, or `build onnxruntime`.

    Those are the ones by which a rule is stale, without the modules that a source of data or a
    checkpoint loads by name.
    """
    found = {step: code_digest(scripts, f"{step}.py") for step in STEPS}
    for engine in ENGINES:
        module = f"tightrope/engines/{engine}.py"
        if (scripts / module).is_file():
            for name, step in OF_ENGINES.items():
                function = "build" if name == "build" else "load"
                digest = code_digest(scripts, f"{step}.py", f"{module}:{function}")
                found[f"{name} {engine}"] = digest
    return found

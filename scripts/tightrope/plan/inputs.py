"""Inputs of jobs that their rules do not name: those that depend on the configuration."""

import re
from pathlib import Path

from snakemake.io import ancient

from tightrope.engine_table import ENGINES
from tightrope.plan import job_inputs, shapes
from tightrope.plan.job import Job
from tightrope.plan.job_inputs import engine_manifest
from tightrope.records.profile import PREFIX
from tightrope.variants import QUANTIZED

# every bundle has these programs
PROGRAMS = ("predict", "verify", "machine", "buckets")


def judged(job: Job) -> dict[str, str]:
    """Return the record of accuracy that precedes the times of a quantized variant.

    Examples that are added change none of its times.
    """
    if job.variant.precision not in QUANTIZED:
        return {}
    return {"judged": ancient(f"reports/{job.model}/{job.variant}.accuracy.json")}


def collapse(job: Job) -> dict[str, str]:
    """Return what shows that a quantized variant has collapsed: its baseline, and its Q/DQ file."""
    if job.variant.precision not in QUANTIZED:
        return {}
    found = {"baseline": f"reports/{job.model}/{job.baseline}.accuracy.json"}
    if job.variant.scheme is not None:
        found["quantized"] = job_inputs.quantized_onnx(job.config, job.model, job.variant)
    return found


def training_examples(job: Job) -> dict[str, str]:
    """Return the train split, or data.json with its labels for a checkpoint that learns nothing.

    Random weights have no tokenizer: theirs is made of the train split.
    """
    keys = job.keys
    learns = keys["train"] or keys.get("qat") or keys["checkpoint"].startswith("scratch:")
    return {"data": f"{job.folder}/{'splits/train' if learns else 'data/data'}.json"}


def quantizing(job: Job) -> dict[str, str]:
    """Return the ONNX file, the calibration cache, and for a mixed model its search."""
    cache, repair = job.calibration
    inputs = {
        "onnx": f"{job.folder}/model.simplified.onnx",
        "calibration": f"{job.folder}/calibration/{cache}.json",
    }
    if repair == "auto":
        inputs["search"] = f"{job.folder}/search/{job.names['scheme']}-{cache}.json"
    return inputs


def counted(job: Job) -> dict[str, str]:
    """Return the simplified ONNX whose operations are counted, where a planned variant reads it."""
    for one in job.plan.variants.get((job.model, job.place), ()):
        if one.calibration or not job_inputs.from_checkpoint(job.config, one.engine):
            return {"onnx": f"{job.folder}/model.simplified.onnx"}
    return {}


def reference(job: Job) -> dict[str, str]:
    """Return the engine of the same variant of the model with which an activation is compared."""
    return {"baseline": engine_manifest(job.plan.references[job.model], job.variant)}


def profile(job: Job) -> dict[str, str]:
    """Return what the requests of the model take at its place, and the peaks of the machine."""
    return {
        "requests": f"{job.folder}/{job.place}.requests.json",
        "peaks": f"artifacts/machine/{job.place}.peaks.json",
    }


def causes(job: Job) -> dict[str, str]:
    """Return the inputs of the build of a variant, their names with a prefix."""
    found = job_inputs.engine_inputs(job.config, job.model, job.variant)
    return {f"{PREFIX}{name}": path for name, path in found.items()}


def graph_files(job: Job) -> dict[str, str]:
    """Return the ONNX file of a graph, and with int8-auto the costs of its operators.

    Costs belong to a scheme and to operator names, which do not change after simplification.
    """
    graph = job.names["graph"]
    onnx = f"{job.folder}/{job_inputs.ONNX_FILES.get(graph, f'quantized/{graph}.onnx')}"
    measured = [
        f"{scheme}-{calibration}"
        for name, scheme, calibration in job.plan.searches
        if name == job.model and (graph == job_inputs.SIMPLIFIED or graph.startswith(f"{scheme}-"))
    ]
    measured.sort(key=lambda name: not re.match(rf"{name}(-|$)", graph))
    costs = {"costs": f"{job.folder}/costs/{measured[0]}.json"} if measured else {}
    return {"onnx": onnx, **costs}


def report_template(job: Job) -> dict[str, str | list[str]]:
    """Return the parts of the page's template, its style sheet and its script."""
    folder = Path(job.location.scripts, "tightrope/report/template")
    parts = [str(path) for path in sorted(folder.glob("*.html"))]
    return {"template": parts, "style": f"{folder}/page.css", "script": f"{folder}/page.js"}


def bundle_programs(job: Job) -> dict[str, list[str]]:
    """Return the programs for an engine and a task; for an engine that has none, the others."""
    engine = job.variant.engine
    names = [*PROGRAMS, "images" if shapes.is_of_images(job.config, job.model) else "texts"]
    names += [f"engines/{engine}"] if ENGINES[engine].bundled else []
    folder = f"{job.location.scripts}/{job_inputs.FOLDER}"
    return {"programs": [f"{folder}/{name}.py" for name in names]}

"""What a user should know before a run: variants that cannot run, small splits, rebuilds."""

import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from tightrope.artifacts.failures import known_reasons
from tightrope.artifacts.manifest import Kind, open_manifest
from tightrope.artifacts.manifest_types import EngineManifest, SplitManifest
from tightrope.decide.bounds import P99_CALLS
from tightrope.errors import ArtifactError
from tightrope.machine.nvml import ambiguous_gpu, nvidia_gpu
from tightrope.plan.config_checks import can_tell, enough_samples, has_buckets
from tightrope.plan.hosts import Document
from tightrope.plan.job_inputs import engine_manifest
from tightrope.plan.plan import Plan
from tightrope.plan.shapes import buckets_of, free_sizes
from tightrope.statistics import SAMPLES_FOR_PERCENTILE

# variants named in a line; the report names all
MOST_NAMED = 4


def announce(workflow: Any, config: Document, plan: Plan) -> None:
    """Print the lines of the main process to the error stream; a run that goes on has said them."""
    if workflow.is_main_process and not known_reasons():
        lines = (
            *unavailable_lines(plan),
            *gpu_lines(plan),
            *split_lines(config),
            *p99_lines(config),
            *bucket_lines(config, plan),
        )
        for line in lines:
            print(line, file=sys.stderr)


def p99_lines(config: Document) -> Iterator[str]:
    """Yield a line where a goal bounds the p99 of a shape, and a fixed number of calls is few."""
    goal, calls = config["goal"], config["latency"]["calls"]
    needed = SAMPLES_FOR_PERCENTILE[99]
    if goal and goal["p99_ms"] is not None and not goal["traffic"] and calls and calls < needed:
        yield (
            f"goal.p99_ms: a p99 takes {needed} calls, and latency.calls = {calls}: no variant is "
            f"known to keep the bound. Set latency: {{calls: {P99_CALLS}}}, or leave calls out"
        )


def gpu_lines(plan: Plan) -> Iterator[str]:
    """Yield lines where variants for a GPU may run on another than is recorded, or on a part."""
    if not any(variant.device == "cuda" for _, variant in plan.jobs):
        return
    if line := ambiguous_gpu():
        yield f"GPU: {line}"
    if (nvidia_gpu().uuid or "").startswith("MIG-"):
        yield (
            f"GPU: {nvidia_gpu().name} is a part of one: its clocks, throttling and energy are not "
            "known, and what its other parts do disturbs no pair of blocks"
        )


def unavailable_lines(plan: Plan) -> Iterator[str]:
    """Yield a line per reason why configured variants cannot run here."""
    variants: dict[str, list[str]] = defaultdict(list)
    for model, variant, reason in plan.unavailable:
        variants[reason].append(f"{model}/{variant}")
    for reason, names in variants.items():
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        yield f"unavailable: {', '.join(names[:MOST_NAMED])}{more}: {reason}"


def split_lines(config: Document) -> Iterator[str]:
    """Yield a line per model whose evaluation split is too small for the accuracy budget.

    Its size is the configured one, or else that of the prepared data.
    """
    points = config["accuracy_budget_points"]
    for name, model in config["models"].items():
        samples = evaluation_samples(name, model)
        if samples and model["data"] != "random" and not can_tell(samples, points / 100):
            enough = enough_samples(samples, points / 100)
            yield (
                f"models.{name}.splits.evaluation: {samples} examples are too few to show that "
                f"accuracy drops by at most {points:g} points, even if no answer changes; "
                + (f"{enough} could show it" if enough else "take more, or a larger budget")
            )


def evaluation_samples(name: str, model: Document) -> int | None:
    """Return the size of a model's evaluation split, None while it is unknown."""
    configured: int | None = model["splits"]["evaluation"]
    if configured is not None:
        return configured
    split = known(f"artifacts/{name}/splits/evaluation.json", SplitManifest)
    return split["samples"] if split and split["source"] == model["data"] else None


def bucket_lines(config: Document, plan: Plan) -> Iterator[str]:
    """Yield a line per model whose engines are built again because `buckets: auto` has changed.

    Only where the buckets of the engines hold all measured shapes.
    """
    told = set()
    for model, variant in plan.jobs if config["buckets"] == "auto" else []:
        if model in told or not has_buckets(config, variant):
            continue
        engine = known(engine_manifest(model, variant), EngineManifest)
        built = engine["options"].get("buckets") if engine and engine["status"] == "ok" else None
        sizes = [size for shape in free_sizes(config, model) for size in shape.items()]
        if (
            built
            and built != buckets_of(config, model)
            and all(size <= max(built.get(axis, ()), default=0) for axis, size in sizes)
        ):
            told.add(model)
            kept = ", ".join(f"{axis}: {sizes}" for axis, sizes in built.items())
            yield (
                f"rebuilt: engines of {model} with buckets: auto, which follows shapes; "
                f"buckets: {{{kept}}} holds these shapes as well and keeps the engines"
            )


def known(path: str, kind: type[Kind]) -> Kind | None:
    """Return the manifest of an earlier run, None where there is none that can be read."""
    try:
        return open_manifest(path, kind)
    except ArtifactError:
        return None

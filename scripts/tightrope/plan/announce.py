"""What a user should know before a run: variants that cannot run, small splits, rebuilds."""

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from tightrope.artifacts.files import read_json
from tightrope.errors import ArtifactError
from tightrope.jobs.ended import known
from tightrope.machine.nvml import ambiguous_gpu
from tightrope.plan.config import Document
from tightrope.plan.plan import Plan
from tightrope.plan.rebuilds import bucket_lines
from tightrope.plan.sample_sizes import can_tell, enough_samples
from tightrope.statistics import SAMPLES_FOR_PERCENTILE
from tightrope.summary.goal_candidates import P99_CALLS

# variants named in a line; the report names all
MOST_NAMED = 4


class Prepared(TypedDict):
    """What is read of the manifest of a split."""

    source: str
    samples: int


def announce(workflow: Any, config: Document, plan: Plan) -> None:
    """Print the lines of the main process to the error stream; a run that goes on has said them."""
    if workflow.is_main_process and not known():
        for line in announced(config, plan):
            print(line, file=sys.stderr)


def announced(config: Document, plan: Plan) -> list[str]:
    """Return all lines."""
    lines = [
        *unavailable_lines(plan),
        *gpu_lines(plan),
        *split_lines(config),
    ]
    lines += p99_lines(config)
    return [*lines, *bucket_lines(config, plan)]


def p99_lines(config: Document) -> Iterator[str]:
    """Yield a line where a goal bounds the p99 of a shape, and too few calls may be measured."""
    goal, latency = config["goal"], config["latency"]
    needed = SAMPLES_FOR_PERCENTILE[99]
    calls = latency["calls"] or latency["min_calls"]
    if goal and goal["p99_ms"] is not None and not goal["traffic"] and calls < needed:
        key = "calls" if latency["calls"] else "min_calls"
        yield (
            f"goal.p99_ms: a p99 takes {needed} calls, and latency.{key} = {calls}; where fewer "
            "are measured no variant is known to keep the bound. "
            f"Set latency: {{{key}: {P99_CALLS}}}"
        )


def gpu_lines(plan: Plan) -> Iterator[str]:
    """Yield a line where variants for a GPU may run on another one than is recorded."""
    line = ambiguous_gpu() if any(variant.device == "cuda" for _, variant in plan.jobs) else None
    if line:
        yield f"GPU: {line}"


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
    try:
        document = read_json(Path(f"artifacts/{name}/splits/evaluation.json"), Prepared)
        prepared: int = document["samples"]
        return prepared if document["source"] == model["data"] else None
    except ArtifactError:
        return None

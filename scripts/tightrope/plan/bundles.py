"""Inputs of the job that bundles a variant."""

from typing import Any

from tightrope.bundle.requirements import IMPORTED
from tightrope.signature import IMAGE
from tightrope.variants import parse

FOLDER = "tightrope/bundle/programs"
PROGRAMS = ("predict", "verify", "machine", "buckets")


def bundle_programs(scripts: str, config: dict[str, Any], wildcards: Any) -> list[str]:
    """Return the programs for an engine and a task; for an engine that has none, the others."""
    engine = parse(wildcards.variant).engine
    images = config["models"][wildcards.model]["task"] == IMAGE
    names = [*PROGRAMS, "images" if images else "texts"]
    names += [f"engines/{engine}"] if engine in IMPORTED else []
    return [f"{scripts}/{FOLDER}/{name}.py" for name in names]

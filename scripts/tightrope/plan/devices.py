"""The place where a job runs, which is a device or one of a host, and what the job asks for there.

Rules take these as functions of their wildcards, see `wildcards.of_place`.
"""

from typing import Any

from tightrope.plan.hosts import planned_on, uses_gpu
from tightrope.variants import device_of, parse

Document = dict[str, Any]


def place_of_device(wildcards: Any) -> str:
    """Return the place of a job on the device of the wildcards."""
    return str(wildcards.device)


def place_of_variant(wildcards: Any) -> str:
    """Return the place of a job that runs the variant."""
    return parse(wildcards.variant).place


def place_of_training(config: Document, wildcards: Any) -> str:
    """Return the place of a job that trains the model.

    `auto` is the GPU where variants for it are planned and it is usable here, or a host has it, or
    where only GPU variants are planned, as on the head node of a cluster: without the trained
    weights they would fail too.
    """
    keys = config["models"][wildcards.model]
    asked = str((keys["train"] or keys.get("qat") or {"device": "cpu"})["device"])
    if asked != "auto":
        return asked
    machine = planned_on()
    ready = machine["host"]["gpu"] is not None and machine["packages"]["pytorch"] is None
    elsewhere = bool(config["hosts"]) or config["devices"] == ["cuda"]
    return "cuda" if uses_gpu(config) and (ready or elsewhere) else "cpu"


def gpus(place: str) -> int:
    """Return the number of GPUs for a job at a place."""
    return int(device_of(place) == "cuda")


def environment(place: str) -> str:
    """Return the conda file for jobs at a place, relative to the rules."""
    return f"../envs/{'gpu' if device_of(place) == 'cuda' else 'cpu'}.yaml"


def default_constraint(workflow: Any) -> str | None:
    """Return the constraint that the profile gives to all jobs as it is written, None without one.

    Rules need it, because what they say themselves replaces it.
    """
    resources = workflow.resource_settings.default_resources or {}
    found = resources.get("constraint")
    return None if found is None else str(found.raw)

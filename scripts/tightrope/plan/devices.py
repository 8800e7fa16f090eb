"""The device of a job, and its GPUs, environment and host keys."""

from typing import Any

from tightrope.plan.config import Document
from tightrope.plan.hosts import constraint_of
from tightrope.plan.plan import Plan
from tightrope.plan.training import device_to_train_on
from tightrope.variants import device_of, parse


def gpus(place: str) -> int:
    """Return the number of GPUs for a job at a place: a device, or a device of a host."""
    return int(device_of(place) == "cuda")


def environment(place: str) -> str:
    """Return the conda file for jobs at a place, relative to the rules."""
    return f"../envs/{'gpu' if device_of(place) == 'cuda' else 'cpu'}.yaml"


def gpus_of_device(wildcards: Any) -> int:
    """Return the GPUs for a job on the device of the wildcards."""
    return gpus(wildcards.device)


def gpus_of_variant(wildcards: Any) -> int:
    """Return the GPUs for a job that runs the variant."""
    return gpus(parse(wildcards.variant).place)


def gpus_of_training(config: Document, wildcards: Any) -> int:
    """Return the GPUs for a job that trains the model."""
    return gpus(device_to_train_on(config, wildcards.model))


def environment_of_device(wildcards: Any) -> str:
    """Return the conda file for a job on the device of the wildcards."""
    return environment(wildcards.device)


def environment_of_variant(wildcards: Any) -> str:
    """Return the conda file for a job that runs the variant."""
    return environment(parse(wildcards.variant).place)


def environment_of_training(config: Document, wildcards: Any) -> str:
    """Return the conda file for a job that trains the model."""
    return environment(device_to_train_on(config, wildcards.model))


def host_of_device(plan: Plan, wildcards: Any) -> str:
    """Return the host key for timing on the device."""
    return plan.host[wildcards.device]


def host_of_variant(plan: Plan, wildcards: Any) -> str:
    """Return the host key for timing the variant."""
    return plan.host[parse(wildcards.variant).place]


def host_of_training(plan: Plan, config: Document, wildcards: Any) -> str:
    """Return the host key for timing the model's training."""
    return plan.host[device_to_train_on(config, wildcards.model)]


def default_constraint(workflow: Any) -> str | None:
    """Return the constraint that the profile gives to all jobs as it is written, None without one.

    Rules need it, because what they say themselves replaces it.
    """
    resources = workflow.resource_settings.default_resources or {}
    found = resources.get("constraint")
    return None if found is None else str(found.raw)


def constraint_of_device(config: Document, default: str | None, wildcards: Any) -> str | None:
    """Return the Slurm constraint of a job on the device of the wildcards."""
    return constraint_of(config, default, wildcards.device)


def constraint_of_variant(config: Document, default: str | None, wildcards: Any) -> str | None:
    """Return the Slurm constraint of a job that runs the variant."""
    return constraint_of(config, default, parse(wildcards.variant).place)


def constraint_of_training(config: Document, default: str | None, wildcards: Any) -> str | None:
    """Return the Slurm constraint of a job that trains the model."""
    return constraint_of(config, default, device_to_train_on(config, wildcards.model))


def numerics_of_device(plan: Plan, wildcards: Any) -> str:
    """Return the host key for numerical results on the device."""
    return plan.numerics[wildcards.device]


def numerics_of_variant(plan: Plan, wildcards: Any) -> str:
    """Return the host key for numerical results of the variant."""
    return plan.numerics[parse(wildcards.variant).place]

"""The device of a job, and its GPUs, environment and host keys."""

from typing import Any

from tightrope.plan.config import Document
from tightrope.plan.plan import Plan
from tightrope.plan.training import device_to_train_on
from tightrope.variants import parse


def gpus(device: str) -> int:
    """Return the number of GPUs for a job on a device."""
    return int(device == "cuda")


def environment(device: str) -> str:
    """Return the conda file for jobs on a device, relative to the rules."""
    return f"../envs/{'gpu' if device == 'cuda' else 'cpu'}.yaml"


def gpus_of_device(wildcards: Any) -> int:
    """Return the GPUs for a job on the device of the wildcards."""
    return gpus(wildcards.device)


def gpus_of_variant(wildcards: Any) -> int:
    """Return the GPUs for a job that runs the variant."""
    return gpus(parse(wildcards.variant).device)


def device_of_cascade(plan: Plan, wildcards: Any) -> str:
    """Return the device of a cascade, on which both its engines run."""
    return plan.cascades[wildcards.cascade][0][1].device


def gpus_of_cascade(plan: Plan, wildcards: Any) -> int:
    """Return the GPUs for a job that measures the cascade."""
    return gpus(device_of_cascade(plan, wildcards))


def environment_of_cascade(plan: Plan, wildcards: Any) -> str:
    """Return the conda file for a job that measures the cascade, relative to the rules."""
    return environment(device_of_cascade(plan, wildcards))


def host_of_cascade(plan: Plan, wildcards: Any) -> str:
    """Return the host key for timing the cascade."""
    return plan.host[device_of_cascade(plan, wildcards)]


def gpus_of_training(config: Document, wildcards: Any) -> int:
    """Return the GPUs for a job that trains the model."""
    return gpus(device_to_train_on(config, wildcards.model))


def environment_of_device(wildcards: Any) -> str:
    """Return the conda file for a job on the device of the wildcards."""
    return environment(wildcards.device)


def environment_of_variant(wildcards: Any) -> str:
    """Return the conda file for a job that runs the variant."""
    return environment(parse(wildcards.variant).device)


def environment_of_training(config: Document, wildcards: Any) -> str:
    """Return the conda file for a job that trains the model."""
    return environment(device_to_train_on(config, wildcards.model))


def host_of_device(plan: Plan, wildcards: Any) -> str:
    """Return the host key for timing on the device."""
    return plan.host[wildcards.device]


def host_of_variant(plan: Plan, wildcards: Any) -> str:
    """Return the host key for timing the variant."""
    return plan.host[parse(wildcards.variant).device]


def host_of_training(plan: Plan, config: Document, wildcards: Any) -> str:
    """Return the host key for timing the model's training."""
    return plan.host[device_to_train_on(config, wildcards.model)]


def numerics_of_device(plan: Plan, wildcards: Any) -> str:
    """Return the host key for numerical results on the device."""
    return plan.numerics[wildcards.device]


def numerics_of_variant(plan: Plan, wildcards: Any) -> str:
    """Return the host key for numerical results of the variant."""
    return plan.numerics[parse(wildcards.variant).device]

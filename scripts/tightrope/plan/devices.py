"""The device of a job, and what follows from it: GPUs, environment and the keys of the host."""

from typing import Any

from tightrope.plan.config import Document
from tightrope.plan.plan import Plan
from tightrope.plan.training import device_to_train_on
from tightrope.variants import parse


def gpus(device: str) -> int:
    """How many GPUs a job on that device takes."""
    return int(device == "cuda")


def environment(device: str) -> str:
    """The conda file of jobs on that device, seen from the rules."""
    return f"../envs/{'gpu' if device == 'cuda' else 'cpu'}.yaml"


def gpus_of_device(wildcards: Any) -> int:
    """The GPUs of a job on that device."""
    return gpus(wildcards.device)


def gpus_of_variant(wildcards: Any) -> int:
    """The GPUs of a job that runs that variant."""
    return gpus(parse(wildcards.variant).device)


def gpus_of_training(config: Document, wildcards: Any) -> int:
    """The GPUs of a job that trains that model."""
    return gpus(device_to_train_on(config, wildcards.model))


def environment_of_device(wildcards: Any) -> str:
    """The conda file of a job on that device."""
    return environment(wildcards.device)


def environment_of_variant(wildcards: Any) -> str:
    """The conda file of a job that runs that variant."""
    return environment(parse(wildcards.variant).device)


def environment_of_training(config: Document, wildcards: Any) -> str:
    """The conda file of a job that trains that model."""
    return environment(device_to_train_on(config, wildcards.model))


def host_of_device(plan: Plan, wildcards: Any) -> str:
    """The host key of what is timed on that device."""
    return plan.host[wildcards.device]


def host_of_variant(plan: Plan, wildcards: Any) -> str:
    """The host key of what is timed of that variant."""
    return plan.host[parse(wildcards.variant).device]


def host_of_training(plan: Plan, config: Document, wildcards: Any) -> str:
    """The host key of a training that is timed."""
    return plan.host[device_to_train_on(config, wildcards.model)]


def numerics_of_device(plan: Plan, wildcards: Any) -> str:
    """The host key of numbers that are computed on that device."""
    return plan.numerics[wildcards.device]


def numerics_of_variant(plan: Plan, wildcards: Any) -> str:
    """The host key of numbers that are computed by that variant."""
    return plan.numerics[parse(wildcards.variant).device]

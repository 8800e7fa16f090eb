"""The machines of a run: the one that it is planned on, and the kinds of nodes under `hosts`.

A place is a device, or a device of one of these: `cpu@genoa`. The process of each job parses the
Snakefile again, maybe on another machine: there it takes what the main process found, from the
environment that Snakemake passes on, so that it plans the same.
"""

import json
import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from tightrope.engine_table import ENGINES
from tightrope.errors import ConfigError, nearest
from tightrope.machine.host import describe_host, fingerprint, for_device
from tightrope.machine.lacks import missing_compiler, missing_packages, refusal_of_gpu
from tightrope.variants import DEVICES, Variant, device_of, host_of, place_of

Document = dict[str, Any]
Jobs = list[tuple[str, Variant]]
# each process reads the environment variable once
machine_in = cache(json.loads)
VARIABLE = "TIGHTROPE_PLANNED_ON"
ATTEMPTS = "TIGHTROPE_ATTEMPTS"


def runs_here(config: Document) -> bool:
    """Return whether the jobs run on this machine: no kind of node is named."""
    return config["host"] == "auto" and not config["hosts"]


def devices_of(config: Document) -> tuple[str, ...]:
    """Return the devices for which variants are planned; `auto` is every device."""
    if config["hosts"]:
        named = {device for host in config["hosts"].values() for device in host["devices"]}
        return tuple(device for device in DEVICES if device in named)
    return DEVICES if config["devices"] == "auto" else tuple(config["devices"])


def hosts_of(config: Document) -> list[tuple[str | None, tuple[str, ...]]]:
    """Return each host with the devices that variants are planned on; None is no named host."""
    if config["hosts"]:
        return [(name, tuple(host["devices"])) for name, host in config["hosts"].items()]
    return [(None, devices_of(config))]


def places(config: Document) -> dict[str, str]:
    """Return the place of each name of one that jobs have.

    With `hosts` a device alone is the first of them that has it, or else the first one: what is
    done once for all hosts, such as training, is done there.
    """
    if not config["hosts"]:
        return {device: device for device in DEVICES}
    own = [place_of(device, name) for name, devices in hosts_of(config) for device in devices]
    firsts = {
        device: next((place for place in own if device_of(place) == device), own[0])
        for device in DEVICES
    }
    return {place: place for place in own} | firsts


def host_at(config: Document, place: str) -> Document:
    """Return the entry of `hosts` for a place, see `places`."""
    host: Document = config["hosts"][host_of(places(config)[place])]
    return host


def known_machine(config: Document, variant: Variant, here: Document) -> Document | None:
    """Return what is known of the machine of a variant, its `isa` at least, else None."""
    if runs_here(config):
        return here
    isa = host_at(config, variant.place)["isa"] if config["hosts"] else None
    return None if isa is None else {"isa": isa}


def host_keys(
    config: Document, here: Document, name: Callable[[Document], str] = fingerprint
) -> dict[str, str]:
    """Return the host key of each place, see `machine.host.require_host`.

    `name` is `fingerprint` for times, `numerics_fingerprint` for numbers.
    """
    if runs_here(config):
        return {device: name(for_device(here, device)) for device in DEVICES}
    if not config["hosts"]:
        return {device: place_of(device, config["host"]) for device in DEVICES}
    return {
        one: " ".join([place, *(host_at(config, one)["isa"] or ())])
        for one, place in places(config).items()
    }


def constraint_of(config: Document, default: str | None, place: str) -> str | None:
    """Return the Slurm constraint of jobs at a place; without `hosts` that of the profile."""
    if not config["hosts"]:
        return default
    return str(host_at(config, place)["constraint"])


def prices_of(config: Document) -> dict[str, float]:
    """Return the price of an hour of each host, by its name or fingerprint."""
    named = {name: host["price"] for name, host in config["hosts"].items() if host["price"]}
    return {**config["prices"], **named}


def check_hosts(config: Document) -> None:
    """What `hosts` says stands in no other key, and a price by name is that of a known host."""
    known = [*config["hosts"], config["host"]]
    for name in config["prices"]:
        if name not in known and not re.fullmatch(r"\*|[0-9a-f]{12}", name):
            raise ConfigError(
                f"config: prices.{name}: no host of that name{nearest(name, known)}; take one of "
                'hosts, the fingerprint of a host (`hosts` in reports/summary.json), or "*"'
            )
    if not config["hosts"]:
        return
    if config["host"] != "auto":
        raise ConfigError(
            f"config: host = {config['host']}: there are hosts too; give one of them "
            "(profiles/slurm/config.yaml sets host, in its entry config)"
        )
    if config["devices"] != "auto":
        raise ConfigError("config: devices: there are hosts, and each says its devices; remove it")


def require_nodes(config: Document, *, local: bool) -> None:
    """Raise ConfigError where the jobs of several hosts would all run on this machine."""
    if len(config["hosts"]) > 1 and local:
        raise ConfigError(
            f"config: hosts = {', '.join(config['hosts'])}: kinds of nodes, but all jobs would run "
            "on this machine; run with --profile profiles/slurm, or leave one of them"
        )


def names_of(variants: list[Variant]) -> list[str]:
    """Return the names by which variants may be asked for, see `studies.requested`."""
    return list(dict.fromkeys(str(one) for each in variants for one in (each, each.anywhere)))


def pass_on(*, main: bool) -> None:
    """In the main process, keep this machine for the processes of jobs; they keep what they got.

    A job whose executor does not count its attempts is at the first.
    """
    os.environ.setdefault(ATTEMPTS, "1")
    if main or VARIABLE not in os.environ:
        os.environ[VARIABLE] = json.dumps(this_machine())


def planned_on() -> Document:
    """Return the machine that the run is planned on, see `this_machine`, which it is else."""
    given = os.environ.get(VARIABLE)
    return machine_in(given) if given else this_machine()


def planning_host() -> dict[str, Any]:
    """Return the host that the run is planned on, as `machine.host.describe_host` does."""
    return planned_on()["host"]


def this_machine() -> Document:
    """Return the host, and why it cannot compile C++, and by engine why not use its GPU, if so."""
    refused = refusal_of_gpu()
    packages = {engine: missing_packages(engine) or refused for engine in ENGINES}
    return {"host": describe_host(), "compiler": missing_compiler(), "packages": packages}


def last_attempt(workflow: Any, wildcards: Any, attempt: int) -> int:
    """Return 1 when no attempt of the job follows this one, else 0.

    The main process knows Snakemake's --retries; on the nodes the environment has the number.
    """
    if workflow.is_main_process and workflow.execution_settings is not None:
        os.environ[ATTEMPTS] = str(workflow.execution_settings.retries + 1)
    return int(attempt >= int(os.environ.setdefault(ATTEMPTS, "1")))


def uses_gpu(config: Document) -> bool:
    """Return whether variants for a GPU are planned."""
    if config["devices"] == "auto" and runs_here(config):
        return planning_host()["gpu"] is not None
    return "cuda" in devices_of(config)

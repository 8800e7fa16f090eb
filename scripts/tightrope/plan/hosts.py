"""The kinds of nodes under `hosts` of the configuration: their places, keys and constraints.

A place is a device, or a device of one of them: `cpu@genoa`.
"""

import re
from collections.abc import Callable
from typing import Any

from tightrope.errors import ConfigError, nearest
from tightrope.machine.host import fingerprint, for_device, numerics_fingerprint
from tightrope.variants import DEVICES, Variant, device_of, host_of, place_of

Document = dict[str, Any]
Jobs = list[tuple[str, Variant]]


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
    """Return what is known of the machine that runs a variant: its `isa` at least, else None.

    `here` describes this machine.
    """
    if runs_here(config):
        return here
    isa = host_at(config, variant.place)["isa"] if config["hosts"] else None
    return None if isa is None else {"isa": isa}


def host_keys(
    config: Document, here: Document, name: Callable[[Document], str] = fingerprint
) -> dict[str, str]:
    """Return the host key of each place, see `machine.host.require_host`.

    `name` gives the key of a machine: by `fingerprint` for times, `numerics_fingerprint` for
    numbers.
    """
    if runs_here(config):
        return {device: name(for_device(here, device)) for device in DEVICES}
    if not config["hosts"]:
        return {device: place_of(device, config["host"]) for device in DEVICES}
    return {
        one: " ".join([place, *(host_at(config, one)["isa"] or ())])
        for one, place in places(config).items()
    }


def numerics_keys(config: Document, here: Document) -> dict[str, str]:
    """Return the host key for numerical results of each place."""
    return host_keys(config, here, numerics_fingerprint)


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


def asked_by_name(jobs: Jobs, names: list[str]) -> Jobs:
    """Return the jobs of the variants with these names; one without a host is of each host's."""
    wanted = set(names)
    return [job for job in jobs if wanted & {str(job[1]), str(job[1].anywhere)}] if wanted else []


def names_of(variants: list[Variant]) -> list[str]:
    """Return the names by which variants may be asked for, see `asked_by_name`."""
    return list(dict.fromkeys(str(one) for each in variants for one in (each, each.anywhere)))

"""Host description: hardware and software that decide speed and numerics of a model."""

import os
import platform
import re
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from tightrope.artifacts.files import digest, read_json, write_json
from tightrope.errors import TightropeError
from tightrope.machine.cores import physical_cores
from tightrope.machine.nvml import nvidia_gpu

# instruction sets that change which kernels a runtime picks
ISA = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "asimdhp",
    "asimddp",
    "i8mm",
    "bf16",
    "sve",
)


class KnownHost(TypedDict):
    """The host that defined a node type, as far as another one is compared with it."""

    fingerprint: str
    cpu: str
    isa: list[str]
    gpu: str | None


@cache
def describe_host() -> dict[str, Any]:
    """Return `cpu`, `isa`, usable physical `cores`, `memory_bytes`, `gpu`, `driver`, `python`.

    Also `gpu_uuid`, which no fingerprint has: cards of one kind are alike.
    """
    fields = cpu_fields()
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    gpu = nvidia_gpu()
    return {
        "cpu": cpu_name(fields),
        "isa": [name for name in ISA if name in flags],
        "cores": physical_cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpu": gpu.name,
        "gpu_uuid": gpu.uuid,
        "driver": gpu.driver,
        "python": platform.python_version(),
    }


def fingerprint(host: dict[str, Any]) -> str:
    """Return twelve hex digits over CPU model, ISA, cores, GPU model and driver."""
    return digest({name: host[name] for name in ("cpu", "isa", "cores", "gpu", "driver")})


def for_device(host: dict[str, Any], device: str) -> dict[str, Any]:
    """Return the host facts relevant to a device: GPU and driver do not matter on the CPU."""
    return host if device == "cuda" else {**host, "gpu": None, "driver": None}


def node_fingerprint(host: dict[str, Any]) -> str:
    """Return twelve hex digits over the type of the node: `fingerprint` without the cores."""
    return digest({name: host[name] for name in ("cpu", "isa", "gpu", "driver")})


def numerics_fingerprint(host: dict[str, Any]) -> str:
    """Return twelve hex digits over what can change numerical results: ISA and GPU model."""
    return digest({name: host[name] for name in ("isa", "gpu")})


def saturates(host: dict[str, Any]) -> bool:
    """Return whether sums of two u8 x s8 products saturate at 16 bits: x86 without VNNI."""
    vnni = {"avx512_vnni", "avx_vnni", "amx_int8"}
    return "avx2" in host["isa"] and not vnni & set(host["isa"])


def cpu_fields() -> dict[str, str]:
    """Return the fields of the first processor in /proc/cpuinfo."""
    text = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def cpu_name(fields: dict[str, str]) -> str:
    """Return the CPU model name, with family and model numbers where /proc/cpuinfo has them.

    A virtual machine may hide the exact name.
    """
    name = fields.get("model name") or platform.processor() or platform.machine()
    if "cpu family" not in fields:
        return name
    return f"{name} (family {fields['cpu family']} model {fields['model']})"


def require_host(key: str, registry: Path | str = "artifacts/hosts") -> None:
    """Raise TightropeError where this machine does not match the host key `key`.

    `key` is a fingerprint, or a node type that `host` of the configuration names. The first job of
    a node type defines it: its host is kept in `registry`.
    """
    host = describe_host()
    hosts = [for_device(host, device) for device in ("cpu", "cuda")]
    if key in [name(one) for name in (fingerprint, numerics_fingerprint) for one in hosts]:
        return
    if re.fullmatch("[0-9a-f]{12}", key):
        raise TightropeError(f"planned for host {key}, this is {fingerprint(host)}: run again")
    file = Path(registry, f"{key}.json")
    if not file.is_file():
        write_json(file, {**host, "fingerprint": node_fingerprint(host)})
    known = read_json(file, KnownHost)
    if known["fingerprint"] != node_fingerprint(host):
        raise TightropeError(
            f"host {key}: this node ({node_in_words(host)}) is of another type than the first "
            f"({node_in_words(known)}); pin the jobs to nodes of one type, or delete {file} "
            "where the type itself has changed"
        )


def node_in_words(host: dict[str, Any]) -> str:
    """Format CPU, instruction sets and GPU of a host."""
    return ", ".join([host["cpu"], " ".join(host["isa"]), host["gpu"] or "no GPU"])

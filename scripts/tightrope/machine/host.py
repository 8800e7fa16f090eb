"""Host description: hardware and software that decide speed and numerics of a model."""

import json
import os
import platform
import re
from functools import cache
from pathlib import Path
from socket import gethostname
from typing import Any, TypedDict

from tightrope.artifacts.files import digest, read_json, write_json
from tightrope.errors import TightropeError
from tightrope.machine.cores import physical_cores
from tightrope.machine.nvml import nvidia_gpu
from tightrope.variants import AT

# instruction sets that change which kernels a runtime picks
ISA = (
    *("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16"),
    *("amx_tile", "amx_bf16", "amx_int8"),
    *("asimd", "asimdhp", "asimddp", "i8mm", "bf16", "sve"),
)
# the hosts that define node types, below the folder of the run or the prefix of a module
REGISTRY = Path("artifacts/hosts")


class KnownHost(TypedDict):
    """The host that defined a node type, as far as another one is compared with it."""

    fingerprint: str
    cpu: str
    isa: list[str]
    gpu: str | None
    driver: str | None


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
    return digest_of(host, "cpu", "isa", "cores", "gpu", "driver")


def for_device(host: dict[str, Any], device: str) -> dict[str, Any]:
    """Return the host facts relevant to a device: GPU and driver do not matter on the CPU."""
    return host if device == "cuda" else {**host, "gpu": None, "driver": None}


def name_in(key: str | None) -> str | None:
    """Return the name of the kind of node in a host key, None in a fingerprint."""
    if key is None or re.fullmatch("[0-9a-f]{12}", key):
        return None
    return key.split()[0].partition(AT)[2]


def named(host: dict[str, Any], name: str | None) -> dict[str, Any]:
    """Return the host with the name that the configuration gives to its kind, if any."""
    return {**host, "name": name} if name else host


def host_key(host: dict[str, Any]) -> str:
    """Return what a summary calls a host: the name of its kind, else its fingerprint."""
    return host.get("name") or fingerprint(host)


def node_fingerprint(host: dict[str, Any]) -> str:
    """Return twelve hex digits over the type of the node: `fingerprint` without the cores."""
    return digest_of(host, "cpu", "isa", "gpu", "driver")


def numerics_fingerprint(host: dict[str, Any]) -> str:
    """Return twelve hex digits over what can change numerical results: ISA and GPU model."""
    return digest_of(host, "isa", "gpu")


def digest_of(host: dict[str, Any], *names: str) -> str:
    """Return twelve hex digits over these facts of a host, which thousands of records share."""
    import msgspec

    return known_digest(names, msgspec.json.encode([host[name] for name in names]))


@cache
def known_digest(names: tuple[str, ...], facts: bytes) -> str:
    """Return the digest of facts, in JSON, by their names."""
    return digest(dict(zip(names, json.loads(facts), strict=True)))


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


def require_host(key: str, registry: Path | str = REGISTRY) -> None:
    """Raise TightropeError where this machine does not match the host key `key`.

    `key` is a fingerprint, or `device@host` with the name of a kind of node, followed by the
    instruction sets that such a node must have. The first job of a place defines its kind: this
    machine, as far as it matters to that device, is kept in `registry`.
    """
    host = describe_host()
    hosts = [for_device(host, device) for device in ("cpu", "cuda")]
    if key in [name(one) for name in (fingerprint, numerics_fingerprint) for one in hosts]:
        return
    if name_in(key) is None:
        raise TightropeError(f"planned for host {key}, this is {fingerprint(host)}: run again")
    place, *wanted = key.split()
    device, _, name = place.partition(AT)
    if lacking := [one for one in wanted if one not in host["isa"]]:
        raise TightropeError(
            f"host {name}: this node ({node_in_words(host)}) lacks {', '.join(lacking)}, which "
            f"hosts.{name}.isa promises; pin the jobs to nodes that have it, or correct isa"
        )
    require_kind(name, for_device(host, device), Path(registry, f"{place}.json"))


def require_kind(name: str, host: dict[str, Any], file: Path) -> None:
    """Raise TightropeError where `host` is of another kind than the one in `file`.

    Without that file it is written; of several jobs at once one does, and all compare with it.
    """
    if not file.is_file():
        write_first(file, {**host, "fingerprint": node_fingerprint(host)})
    known = read_json(file, KnownHost)
    if known["fingerprint"] != node_fingerprint(host):
        raise TightropeError(
            f"host {name}: this node ({node_in_words(host)}) is of another type than the first "
            f"({node_in_words(known)}); pin the jobs to nodes of one type, or delete {file} "
            "where the type itself has changed"
        )


def write_first(file: Path, document: dict[str, Any]) -> None:
    """Write the file unless another job, perhaps on another node, has written it meanwhile."""
    draft = file.with_name(f".{file.stem}.{gethostname()}.{os.getpid()}.json")
    write_json(draft, document)
    try:
        file.hardlink_to(draft)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def node_in_words(host: dict[str, Any]) -> str:
    """Format CPU, instruction sets, GPU and driver of a host."""
    gpu = " with driver ".join(word for word in (host["gpu"], host["driver"]) if word)
    return ", ".join([host["cpu"], " ".join(host["isa"]), gpu or "no GPU"])

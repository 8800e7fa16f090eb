"""What this machine is, so far as it decides how fast and how exactly a model runs."""

import hashlib
import json
import math
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

# instruction sets that change which kernels a runtime picks
ISA = (
    *("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16"),
    *("amx_tile", "amx_bf16", "amx_int8"),
    *("asimd", "asimddp", "i8mm", "bf16", "sve"),
)


@cache
def describe_host() -> dict[str, Any]:
    """`cpu`, `isa`, physical `cores` in reach, `memory_bytes`, `gpu`, `driver`, `python`."""
    fields = cpu_fields()
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    gpu, driver = nvidia_gpu()
    return {
        "cpu": cpu_name(fields),
        "isa": [name for name in ISA if name in flags],
        "cores": physical_cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpu": gpu,
        "driver": driver,
        "python": platform.python_version(),
    }


def fingerprint(host: dict[str, Any]) -> str:
    """Twelve hex digits over CPU model, ISA, cores, GPU model and driver."""
    return digest({name: host[name] for name in ("cpu", "isa", "cores", "gpu", "driver")})


def numerics_fingerprint(host: dict[str, Any]) -> str:
    """Twelve hex digits over what can change an answer: the ISA and the GPU model."""
    return digest({name: host[name] for name in ("isa", "gpu")})


def digest(document: Any) -> str:
    """Twelve hex digits over `document` as sorted JSON."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


def cpu_fields() -> dict[str, str]:
    """The fields of the first processor in /proc/cpuinfo."""
    text = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def cpu_name(fields: dict[str, str]) -> str:
    """Model name, with family and model numbers where a virtual machine hides the exact name."""
    name = fields.get("model name") or platform.processor() or platform.machine()
    if "cpu family" not in fields:
        return name
    return f"{name} (family {fields['cpu family']} model {fields['model']})"


def physical_cores() -> int:
    """Physical cores among the processors that this process may use, within its CPU quota."""
    processors = os.sched_getaffinity(0)
    topology = Path("/sys/devices/system/cpu")
    siblings = {core_siblings(topology / f"cpu{number}", number) for number in processors}
    return max(1, min(len(siblings), cpu_quota()))


def core_siblings(processor: Path, number: int) -> str:
    """The processors that share a core with this one, as the kernel writes them."""
    file = processor / "topology" / "thread_siblings_list"
    return file.read_text().strip() if file.is_file() else str(number)


def cpu_quota() -> int:
    """Whole processors that the control group allows; a large number without a limit."""
    limit = Path("/sys/fs/cgroup/cpu.max")
    quota, _, period = limit.read_text().partition(" ") if limit.is_file() else ("max", "", "")
    return math.ceil(int(quota) / int(period)) if quota.isdigit() else 1 << 20


def nvidia_gpu() -> tuple[str | None, str | None]:
    """Model and driver of the first NVIDIA GPU, None twice where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None, None
    words = [program, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)
    if found.returncode or not found.stdout.strip():
        return None, None
    name, _, driver = found.stdout.splitlines()[0].partition(", ")
    return name, driver


def intra_op_threads(setting: int | str) -> int:
    """`threads` of the configuration as a number: `auto` is the physical cores of this host."""
    return physical_cores() if setting == "auto" else int(setting)

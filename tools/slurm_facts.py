"""What a Slurm says of itself: its settings, partitions and nodes."""

import re
import shutil
import subprocess
from typing import NamedTuple

Record = dict[str, str]


class CheckError(Exception):
    """Nothing can be compared, for the reason in one line."""


class Cluster(NamedTuple):
    """What Slurm says of itself; nodes and partitions by name."""

    settings: Record
    partitions: dict[str, Record]
    nodes: dict[str, Record]


def ask(*words: str) -> str:
    """Return what a command of Slurm prints. Raises CheckError."""
    if not shutil.which(words[0]):
        raise CheckError(
            f"{words[0]} is not on PATH: Slurm is not installed here; run this where jobs are "
            "submitted, on a login node"
        )
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        raise CheckError(f"`{' '.join(words)}` gave no answer in 60 s: is slurmctld up?") from None
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise CheckError(f"`{' '.join(words)}` failed: {reason}")
    return done.stdout


def records(text: str, key: str) -> dict[str, Record]:
    """Return the lines of `scontrol --oneliner` by the value of `key`."""
    lines = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in text.splitlines()]
    return {line[key]: line for line in lines if key in line}


def cluster_here() -> Cluster:
    """Ask Slurm. Raises CheckError."""
    settings = dict(
        re.findall(r"^(\w+)\s*= (\S+)", ask("scontrol", "show", "config"), re.MULTILINE)
    )
    partitions = records(ask("scontrol", "--oneliner", "show", "partition"), "PartitionName")
    nodes = records(ask("scontrol", "--oneliner", "show", "node"), "NodeName")
    return Cluster(settings, partitions, nodes)


def has_features(node: Record, constraint: str) -> bool:
    """Return whether a node meets a constraint such as `a`, `a&b`, `[a|b]*2`."""
    there = set(node.get("AvailableFeatures", "").split(","))
    words = re.sub(r"\*\d+", "", constraint).translate(str.maketrans("[]", "()"))
    words = re.sub(r"[^\s()&|,]+", lambda word: str(word[0] in there), words)
    # of True, False, parentheses and operators alone
    return bool(eval(re.sub(r"[&,]", " and ", words).replace("|", " or ")))


def minutes_of(limit: str) -> float:
    """Return a time limit of Slurm, `[days-]hours:minutes:seconds`, in minutes."""
    days, _, rest = limit.rpartition("-")
    parts = re.fullmatch(r"(\d+):(\d+):(\d+)", rest)
    if not parts:
        return float("inf")
    hours, minutes, seconds = map(int, parts.groups())
    return int(days or 0) * 1440 + hours * 60 + minutes + seconds / 60


def limits_of(node: Record, partition: Record) -> dict[str, float]:
    """Return what a job may have of a node in a partition: `threads`, `mem_mb`."""
    cpus, memory = partition.get("MaxCPUsPerNode", ""), partition.get("MaxMemPerNode", "")
    reserved = int(node.get("MemSpecLimit", 0))
    return {
        "threads": min(
            int(node.get("CPUEfctv", node["CPUTot"])), int(cpus) if cpus.isdigit() else 10**9
        ),
        "mem_mb": min(
            int(node["RealMemory"]) - reserved, int(memory) if memory.isdigit() else 10**9
        ),
    }


def partition_of(cluster: Cluster, name: str | None) -> Record | None:
    """Return the partition, the default one where none is named."""
    if name is not None:
        return cluster.partitions.get(str(name))
    partitions = cluster.partitions.values()
    return next((one for one in partitions if one.get("Default") == "YES"), None)

"""Say what of a Slurm profile does not fit this cluster: `check_profile.py profiles/slurm`.

A second word is the configuration whose `hosts` are looked for, config/config.yaml by default. One
line per finding, and exit code 1 where there is one. It asks scontrol and sacctmgr, and submits
nothing. What a rule asks for is compared at its last attempt, when it asks for the most.
"""

import getpass
import importlib.util
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
import yte
from slurm_facts import (
    CheckError,
    Cluster,
    Record,
    ask,
    cluster_here,
    has_features,
    limits_of,
    minutes_of,
    partition_of,
)

PLUGIN = "snakemake_executor_plugin_slurm"
# by the key of the profile: what a user reads of it, and the marked value that bounds it
WORDS = {"threads": ("CPUs", "cores"), "mem_mb": ("MiB", "node_mb")}
CONSTRAINT = "constraint"
UNUSABLE = ("DOWN", "DRAIN", "FAIL", "NOT_RESPONDING")


class Job(NamedTuple):
    """What the jobs of a rule ask for at their last attempt; `minutes` None: no limit."""

    rule: str
    partition: str | None
    constraint: str | None
    threads: int
    mem_mb: int
    minutes: int | None


class Asked(NamedTuple):
    """What is asked of the nodes of one type: a feature and devices; `key` says where."""

    constraint: str | None
    devices: Sequence[str]
    key: str = CONSTRAINT


def read_profile(folder: Path) -> dict[str, Any]:
    """Return the profile as Snakemake reads it. Raises CheckError."""
    path = folder / "config.yaml"
    try:
        profile = yte.process_yaml(path.read_text(), require_use_yte=True)
    except OSError as error:
        raise CheckError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, yte.exceptions.YteError) as error:
        raise CheckError(f"{path}: not read: {' '.join(str(error).split())}") from None
    if not isinstance(profile, dict) or profile.get("executor") != "slurm":
        raise CheckError(f"{path}: no profile for Slurm: it has no `executor: slurm`")
    return profile


def hosts_of(profile: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return `hosts` of the profile's `config`, else of a configuration. Raises CheckError."""
    try:
        document = yaml.safe_load(path.read_text()) if path.is_file() else None
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise CheckError(f"{path}: not read: {' '.join(str(error).split())}") from None
    found = {**(document if isinstance(document, dict) else {}), **(profile.get("config") or {})}
    hosts = found.get("hosts") or {}
    if not isinstance(hosts, dict) or not all(isinstance(one, dict) for one in hosts.values()):
        raise CheckError(f"{path}: hosts has no entries such as genoa: {{constraint: zen4}}")
    return hosts


def number(value: Any, place: str, attempt: int) -> int:
    """Return the value of a resource at that attempt. Raises CheckError."""
    try:
        # the profile is the user's own, and Snakemake evaluates it in the same way
        return int(eval(value, {"attempt": attempt}) if isinstance(value, str) else value)
    except Exception as error:
        raise CheckError(f"{place} = {value}: no number ({error})") from None


def jobs_of(profile: dict[str, Any]) -> list[Job]:
    """Return what each rule of the profile asks for. Raises CheckError."""
    defaults = profile.get("default-resources") or {}
    threads, own = profile.get("set-threads") or {}, profile.get("set-resources") or {}
    attempt = 1 + int(profile.get("retries") or 0)
    jobs = []
    for rule in sorted({*threads, *own}):
        asked = {**defaults, **(own.get(rule) or {})}
        place = f"set-resources.{rule}"
        minutes = asked.get("runtime")
        job = Job(
            rule,
            asked.get("slurm_partition"),
            asked.get("constraint"),
            number(threads.get(rule, 1), f"set-threads.{rule}", attempt),
            number(asked.get("mem_mb", 0), f"{place}.mem_mb", attempt),
            None if minutes is None else number(minutes, f"{place}.runtime", attempt),
        )
        jobs.append(job)
    return jobs


def findings(profile: dict[str, Any], hosts: dict[str, Any], cluster: Cluster) -> Iterator[str]:
    """Yield what does not fit, one line each. Raises CheckError."""
    if not importlib.util.find_spec(PLUGIN):
        yield "Snakemake has no Slurm plugin here: pip install --no-deps -r envs/slurm.txt"
    yield from status_findings(profile, cluster.settings)
    yield from account_findings(profile, cluster.settings)
    places: dict[tuple[str | None, str | None], list[Job]] = defaultdict(list)
    for job in jobs_of(profile):
        places[job.partition, job.constraint].append(job)
    devices = (profile.get("config") or {}).get("devices") or ()
    for (partition, constraint), jobs in places.items():
        yield from place_findings(cluster, partition, Asked(constraint, devices), jobs)
    for name, host in hosts.items():
        key = f"hosts.{name}.constraint"
        asked = Asked(host.get("constraint"), host.get("devices") or ["cpu"], key)
        for partition, jobs in by_partition(places).items():
            yield from place_findings(cluster, partition, asked, jobs)


def by_partition(places: dict[tuple[str | None, str | None], list[Job]]) -> dict[Any, list[Job]]:
    """Return the jobs by partition alone."""
    found: dict[str | None, list[Job]] = defaultdict(list)
    for (partition, _), jobs in places.items():
        found[partition] += jobs
    return found


def status_findings(profile: dict[str, Any], settings: Record) -> Iterator[str]:
    """Yield why the plugin would not see how jobs end."""
    command = profile.get("slurm-status-command", "sacct")
    storage = settings.get("AccountingStorageType", "(null)")
    if command == "sacct" and "slurmdbd" not in storage:
        yield (
            f"slurm-status-command = sacct: accounting is missing (AccountingStorageType = "
            f"{storage}), so the run would wait for ever; set it to squeue (`status`)"
        )
    first = int(profile.get("slurm-init-seconds-before-status-checks", 40))
    age = settings.get("MinJobAge", "0")
    if command == "squeue" and int(age) < 3 * first:
        yield (
            f"slurm-status-command = squeue: Slurm forgets jobs {age} s after their end "
            f"(MinJobAge), below 3 x slurm-init-seconds-before-status-checks = {3 * first}; set "
            f"that to at most {max(1, int(age) // 3)}"
        )


def account_findings(profile: dict[str, Any], settings: Record) -> Iterator[str]:
    """Yield an account that the user has not, where Slurm keeps accounts. Raises CheckError."""
    account = (profile.get("default-resources") or {}).get("slurm_account")
    if not account or "slurmdbd" not in settings.get("AccountingStorageType", ""):
        return
    user = getpass.getuser()
    words = ["-n", "-P", "list", "associations", f"user={user}", "format=account"]
    known = sorted(set(ask("sacctmgr", *words).split()))
    if account not in known:
        words = f"{user} has {', '.join(known) or 'no account'} (`account`)"
        yield f"slurm_account = {account}: {words}"


def place_findings(
    cluster: Cluster, partition: str | None, asked: Asked, jobs: list[Job]
) -> Iterator[str]:
    """Yield what does not fit of the jobs that go to one partition and one type of node."""
    constraint, devices, key = asked
    facts = partition_of(cluster, partition)
    if facts is None:
        known = ", ".join(cluster.partitions) or "none"
        yield f"slurm_partition = {partition}: no such partition; there are: {known} (`partition`)"
        return
    name = facts["PartitionName"]
    if facts.get("State", "UP") != "UP":
        yield f"slurm_partition = {name}: it is {facts['State']} and starts no job (`partition`)"
    inside = [
        node for node in cluster.nodes.values() if name in node.get("Partitions", "").split(",")
    ]
    nodes = [node for node in inside if not constraint or has_features(node, constraint)]
    if not nodes:
        features = {one for node in inside for one in node.get("AvailableFeatures", "").split(",")}
        known = ", ".join(sorted(features - {"", "(null)"})) or "none"
        words = f"no node of {name} has it; features there: {known} (`{key}`)"
        yield f"{key} = {constraint}: {words}"
        return
    where = f"a node of {name}" + (f" with {constraint}" if constraint else "")
    usable = [node for node in nodes if not any(one in node["State"] for one in UNUSABLE)]
    if not usable:
        states = ", ".join(f"{node['NodeName']} {node['State']}" for node in nodes)
        yield f"{key} = {constraint}: no node of {name} with it is up now ({states})"
    yield from size_findings(where, [limits_of(node, facts) for node in nodes], jobs)
    yield from time_findings(facts, jobs)
    if "cuda" in devices and not any("gpu" in node.get("Gres", "") for node in nodes):
        place = "config.devices" if key == CONSTRAINT else key.replace(CONSTRAINT, "devices")
        yield f"{place} = {devices}: {where} has no GPU that Slurm knows (Gres)"


def size_findings(where: str, limits: list[dict[str, float]], jobs: list[Job]) -> Iterator[str]:
    """Yield the rules that ask for more CPUs or memory than any node has."""
    for key, (unit, marked) in WORDS.items():
        most = max(limit[key] for limit in limits)
        yield from too_much(jobs, key, most, f"{unit}: {where} has at most {most:g} (`{marked}`)")


def time_findings(partition: Record, jobs: list[Job]) -> Iterator[str]:
    """Yield the rules that ask for more time than their partition gives."""
    most = minutes_of(partition.get("MaxTime", "UNLIMITED"))
    name = partition["PartitionName"]
    words = f"minutes: {name} gives at most {most:g} (`longest_minutes`)"
    yield from too_much([job for job in jobs if job.minutes], "minutes", most, words)


def too_much(jobs: list[Job], key: str, most: float, words: str) -> Iterator[str]:
    """Yield one line for all jobs that ask for more than `most`, if there are any."""
    above = [job for job in jobs if getattr(job, key) > most]
    if above:
        worst = max(above, key=lambda job: getattr(job, key))
        others = f" and {len(above) - 1} other rules" if len(above) > 1 else ""
        yield f"{worst.rule}{others}: up to {getattr(worst, key)} {words}"


def main(folder: str = "profiles/slurm", configuration: str = "config/config.yaml") -> int:
    """Print what does not fit; return the exit code."""
    try:
        profile = read_profile(Path(folder))
        found = list(findings(profile, hosts_of(profile, Path(configuration)), cluster_here()))
    except CheckError as error:
        found = [str(error)]
    for line in found:
        print(f"{folder}: {line}")
    if not found:
        print(f"{folder} fits this cluster")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

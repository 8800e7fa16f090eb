"""What tools/check_profile.py says of a profile on a real Slurm, and where there is none."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from slurm_cluster import Cluster
from slurm_project import PROFILE, write_profile
from tiny_project import Project


@pytest.fixture(scope="module")
def bare(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A folder with nothing but the profile of the repository."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "profiles").mkdir()
    (folder / "profiles/slurm").symlink_to(repository / "profiles/slurm")
    (folder / "tools").symlink_to(repository / "tools")
    return Project(folder)


def check(project: Project, folder: str = PROFILE, **variables: str) -> tuple[int, list[str]]:
    """The exit code of the tool and its lines, each without the folder at its begin."""
    words = [sys.executable, "tools/check_profile.py", folder]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    environment = {**os.environ, **variables}
    done = subprocess.run(words, cwd=project.folder, env=environment, text=True, **streams)
    assert all(line.startswith(folder) for line in done.stdout.splitlines()), done.stdout
    return done.returncode, [line.removeprefix(f"{folder}: ") for line in done.stdout.splitlines()]


def test_an_adapted_profile_fits(bare: Project, cluster: Cluster) -> None:
    write_profile(bare)
    assert check(bare) == (0, [f"{PROFILE} fits this cluster"])


def test_the_profile_before_it_is_adapted_is_told_what_to_set(bare, cluster) -> None:
    code, lines = check(bare, "profiles/slurm")
    assert code == 1
    assert lines == [
        "slurm-status-command = sacct: accounting is missing (AccountingStorageType = "
        "accounting_storage/none), so the run would wait for ever; set it to squeue (`status`)",
        "constraint = cpu-node: no node of main has it; features there: large, small "
        "(`constraint`)",
    ]


@pytest.mark.parametrize(
    ("values", "line"),
    [
        (
            {"partition": "night"},
            "slurm_partition = night: no such partition; there are: main, short (`partition`)",
        ),
        (
            {"partition": "short"},
            "constraint = small: no node of short has it; features there: large (`constraint`)",
        ),
        (
            {"cores": 3},
            "build_compile and 31 other rules: up to 3 CPUs: a node of main with small has at "
            "most 2 (`cores`)",
        ),
        (
            {"node_mb": 7000},
            "build_compile and 39 other rules: up to 7000 MiB: a node of main with small has at "
            "most 6000 (`node_mb`)",
        ),
        (
            {"longest_minutes": 480},
            "build_openvino and 21 other rules: up to 480 minutes: main gives at most 120 "
            "(`longest_minutes`)",
        ),
    ],
    ids=["partition", "constraint", "cores", "memory", "minutes"],
)
def test_what_no_node_has_is_one_line_with_the_value_to_change(values, line, bare, cluster) -> None:
    write_profile(bare, **values)
    code, lines = check(bare)
    assert code == 1
    assert [without_count(one) for one in lines] == [without_count(line)]


def without_count(line: str) -> str:
    """The line without its first words, `rule and n other rules`, which each new rule changes."""
    first, rules, rest = line.partition(" other rules: ")
    return rest if rules else first


def test_each_of_several_hosts_must_be_of_a_node(bare: Project, cluster: Cluster) -> None:
    write_profile(bare)
    hosts = {"a": {"constraint": "small"}, "b": {"constraint": "huge"}}
    hosts["c"] = {"constraint": "large", "devices": ["cuda"]}
    (bare / "config").mkdir(exist_ok=True)
    (bare / "config/config.yaml").write_text(yaml.safe_dump({"hosts": hosts}))
    code, lines = check(bare)
    (bare / "config/config.yaml").unlink()
    assert code == 1
    assert lines == [
        "hosts.b.constraint = huge: no node of main has it; features there: large, small "
        "(`hosts.b.constraint`)",
        "hosts.c.devices = ['cuda']: a node of main with large has no GPU that Slurm knows (Gres)",
    ]


def test_nodes_that_are_all_down_are_told(bare: Project, cluster: Cluster) -> None:
    write_profile(bare)
    cluster.clear()
    cluster.ask("scontrol", "update", "NodeName=n1", "State=DOWN", "Reason=test")
    try:
        code, (line,) = check(bare)
    finally:
        cluster.clear()
    assert code == 1
    assert line.startswith("constraint = small: no node of main with it is up now (n1 DOWN")


def test_squeue_that_forgets_jobs_too_early_is_told(bare: Project, cluster: Cluster) -> None:
    write_profile(bare)
    path = f"{PROFILE}/config.yaml"
    bare.edit(path, "before-status-checks: 9", "before-status-checks: 2000")
    code, told = check(bare)
    assert code == 1
    # a busy machine may also have lost sight of its node for a moment
    assert told[0] == (
        "slurm-status-command = squeue: Slurm forgets jobs 3600 s after their end (MinJobAge), "
        "below 3 x slurm-init-seconds-before-status-checks = 6000; set that to at most 1200"
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("executor: local\n", "no profile for Slurm: it has no `executor: slurm`"),
        ("executor: [slurm\n", "not read: while parsing a flow sequence"),
        (
            "executor: slurm\nset-resources:\n  summarize: {mem_mb: 2 * size}\n",
            "set-resources.summarize.mem_mb = 2 * size: no number (name 'size' is not defined)",
        ),
    ],
)
def test_a_profile_that_is_none_is_told_in_one_line(text, line, tmp_path, repository) -> None:
    (tmp_path / "tools").symlink_to(repository / "tools")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/config.yaml").write_text(text)
    code, (told,) = check(Project(tmp_path), "own")
    assert (code, line in told or "scontrol" in told) == (1, True)


def test_a_folder_without_a_profile_is_told(bare: Project) -> None:
    assert check(bare, "none") == (1, ["none/config.yaml: No such file or directory"])


def test_a_machine_without_slurm_is_told_where_to_ask(bare: Project) -> None:
    code, lines = check(bare, "profiles/slurm", PATH="/none")
    assert (code, lines) == (
        1,
        [
            "scontrol is not on PATH: Slurm is not installed here; run this where jobs are "
            "submitted, on a login node"
        ],
    )

"""Several kinds of nodes in one report, of which one is no node's, on a real Slurm."""

import re
from typing import Any

import pytest
from slurm_cluster import Cluster
from slurm_project import PROFILE, SECONDS, SETTINGS, write_profile
from tiny_project import MODEL, SUMMARY, Project

HOSTS = {name: {"constraint": name} for name in ("small", "large", "absent")}
NODES = {"small": "n1", "large": "n2"}
VARIANTS = ("pytorch-fp32", "onnxruntime-fp32")


@pytest.fixture(scope="module")
def measured(
    finished: Project, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Project:
    """The tiny project after one run on two kinds of nodes, and a third that no node is of."""
    cluster.clear()
    project = finished.copy(tmp_path_factory.mktemp("hosts") / "project")
    write_profile(project, retries=0)
    project.edit(f"{PROFILE}/config.yaml", "config:\n  host: ?host\n", "")
    project.configure(**SETTINGS, hosts=HOSTS, devices="auto")
    (project / "reports/summary.html").unlink()
    running = project.start("--profile", PROFILE)
    output, _ = running.communicate(timeout=SECONDS)
    assert (project / "reports/summary.html").is_file(), output
    assert running.returncode == 1, output
    return project


@pytest.fixture(scope="module")
def summary(measured: Project) -> dict[str, Any]:
    return measured.read(SUMMARY)


def test_each_variant_is_measured_on_each_kind_of_node_that_there_is(summary) -> None:
    statuses = {result["variant"]: result["status"] for result in summary["results"]}
    assert statuses == {
        f"cpu@{host}-{variant}": "failed" if host == "absent" else "ok"
        for host in HOSTS
        for variant in VARIANTS
    }
    assert set(summary["hosts"]) == set(NODES)
    baselines = {one["variant"]: one["baseline"] for one in summary["results"]}
    for host in NODES:
        assert baselines[f"cpu@{host}-onnxruntime-fp32"] == f"cpu@{host}-pytorch-fp32"


def test_each_host_has_its_own_decision(summary: dict[str, Any]) -> None:
    decided = {(one["model"], one["host"]) for one in summary["recommendations"]}
    assert decided == {(MODEL, host) for host in NODES}
    for one in summary["recommendations"]:
        named = [one["variant"], *(other["variant"] for other in one["rejected"])]
        assert {name.partition("-")[0] for name in named if name} <= {f"cpu@{one['host']}"}


def test_jobs_ran_on_nodes_of_their_host(measured: Project, cluster: Cluster) -> None:
    ran: dict[str, set[str]] = {}
    for job in cluster.jobs(measured.folder):
        if host := re.search(r"cpu@?_?(small|large)", job.comment):
            ran.setdefault(host[1], set()).add(job.node)
    assert ran == {host: {node} for host, node in NODES.items()}
    known = sorted(path.name for path in (measured / "artifacts/hosts").iterdir())
    assert [name for name in known if "@small-node" not in name] == [
        f"cpu@{host}.json" for host in sorted(NODES)
    ]


def test_a_host_that_no_node_is_of_fails_with_the_setting_to_change(measured, summary) -> None:
    reasons = [one["reason"] for one in summary["results"] if "@absent" in one["variant"]]
    assert len(reasons) == len(VARIANTS)
    for reason in reasons:
        assert "Invalid feature specification" in reason
        assert "`constraint`, or that of the host under `hosts`" in reason


def test_the_page_says_on_which_host_each_decision_holds(measured: Project) -> None:
    page = (measured / "reports/summary.html").read_text()
    assert all(f"{host}: " in page for host in NODES)

"""Runs through profiles/slurm on a real Slurm: undisturbed, with a lost node, and killed."""

import os
import re
import signal
import subprocess

from slurm_cluster import Cluster, wait_for
from slurm_project import PROFILE, SECONDS, give_order, write_profile
from tiny_project import MODEL, Project

VARIANTS = ("cpu-pytorch-fp32", "cpu-onnxruntime-fp32")
LATENCY = f"reports/{MODEL}/{VARIANTS[1]}.latency.json"
# jobs that run where Snakemake does
LOCAL = {"split_data", "summarize", "render_report"}
# until the file `orders/begun` is there: the job that makes it hangs, the next one does not
HANG_ONCE = """
import time
try:
    pathlib.Path("orders/begun").open("x")
    time.sleep(3600)
except FileExistsError:
    pass
"""


def begin(project: Project) -> "subprocess.Popen[str]":
    """Start a run whose measurement of latency hangs; return when it does."""
    (project / LATENCY).unlink()
    give_order(project, "measure_latency", HANG_ONCE)
    running = project.start("--profile", PROFILE)
    assert wait_for((project / "orders/begun").exists, SECONDS), running.poll()
    return running


def test_the_tiny_project_ends_in_a_complete_report(finished: Project, cluster: Cluster) -> None:
    assert finished.statuses() == dict.fromkeys(VARIANTS, "ok")
    page = (finished / "reports/summary.html").read_text()
    assert all(variant in page for variant in VARIANTS)
    logs = {path.parent.name for path in (finished / "artifacts/logs").glob("*/*.log")}
    jobs = cluster.jobs(finished.folder)
    rules = {re.sub(r"_wildcards_.*", "", job.comment).removeprefix("rule_") for job in jobs}
    assert rules == logs - LOCAL
    assert {job.state for job in jobs} == {"COMPLETED"}
    # the constraint holds all jobs to one type of node
    assert {job.node for job in jobs} == {"n1"}
    assert (finished / "artifacts/hosts/cpu@small-node.json").is_file()
    assert finished.plan("--profile", PROFILE) == set()


def test_the_job_of_a_lost_node_runs_again_on_another_one_and_nowhere_else(project, cluster):
    write_profile(project, retries=1, constraint="small|large")
    running = begin(project)
    (lost,) = cluster.jobs(project.folder)
    cluster.ask("scontrol", "update", f"NodeName={lost.node}", "State=DOWN", "Reason=test")
    output, _ = running.communicate(timeout=SECONDS)
    assert running.returncode == 0, output
    assert project.statuses() == dict.fromkeys(VARIANTS, "ok")
    jobs = [job for job in cluster.jobs(project.folder) if job.comment == lost.comment]
    assert [job.state for job in jobs] == ["NODE_FAIL", "COMPLETED"]
    assert jobs[1].node != lost.node


def test_a_run_beside_jobs_of_a_killed_one_is_refused(project: Project, cluster: Cluster) -> None:
    running = begin(project)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate(timeout=30)
    (orphan,) = cluster.at_work()
    refused = project.snakemake("--profile", PROFILE)
    assert refused.returncode != 0
    (line,) = [line for line in refused.stdout.splitlines() if "scancel" in line]
    assert [job.number for job in cluster.at_work()] == [orphan.number]
    assert not (project / LATENCY).exists()
    (words,) = re.findall(r"scancel [0-9 ]+", line)
    cluster.ask(*words.split())
    assert wait_for(lambda: not cluster.at_work(), 60), cluster.jobs()
    again = project.start("--profile", PROFILE)
    output, _ = again.communicate(timeout=SECONDS)
    assert again.returncode == 0, output
    assert project.statuses() == dict.fromkeys(VARIANTS, "ok")
    states = {job.number: job.state for job in cluster.jobs(project.folder)}
    assert states.pop(orphan.number) == "CANCELLED"
    assert set(states.values()) == {"COMPLETED"}

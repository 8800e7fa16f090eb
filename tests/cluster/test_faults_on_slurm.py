"""Whatever ends a job on Slurm is a failure with Slurm's words, in a report that is complete."""

import re
import subprocess
import time

import pytest
from slurm_cluster import Cluster, Job
from slurm_project import PROFILE, SECONDS, SETTINGS, give_order, write_profile
from tiny_project import MODEL, Project

PYTORCH, ONNXRUNTIME = "cpu-pytorch-fp32", "cpu-onnxruntime-fp32"
TORCHSCRIPT, OPENVINO = "cpu-torchscript-fp32", "cpu-openvino-fp32"
RECORDS = {kind: f"reports/{MODEL}/{ONNXRUNTIME}.{kind}.json" for kind in ("latency", "accuracy")}
# the first job of a rule only: a run that goes on may start another one for its failure
HANG = """
import time
if not pathlib.Path("orders", job.rule + ".begun").exists():
    pathlib.Path("orders", job.rule + ".begun").touch()
    time.sleep(3600)
"""
# above the 3,000 MiB of its job, outside the child that is watched
FILL = HANG.replace("    time.sleep", "    block = b'1' * 3_600_000_000\n    time.sleep")
Ended = dict[str, Job]


def end_jobs(project: Project, cluster: Cluster, running: "subprocess.Popen[str]") -> Ended:
    """End what hangs, each in its way, until the run has ended; return those jobs by their rule."""
    ways = {
        "measure_latency": ("scontrol", "update", "EndTime=now+2"),
        "build_openvino": ("scancel",),
    }
    ended: Ended = {}
    deadline = time.monotonic() + SECONDS
    while running.poll() is None and time.monotonic() < deadline:
        # the last report stays until there is another one
        assert (project / "reports/summary.html").is_file()
        for job in cluster.jobs(project.folder):
            rule = re.sub(r"_wildcards_.*", "", job.comment).removeprefix("rule_")
            hangs = job.state == "RUNNING" and (project / f"orders/{rule}.begun").exists()
            if hangs and rule not in ended:
                ended[rule] = job
                words = ways.get(rule, ())
                number = f"JobId={job.number}" if "scontrol" in words else job.number
                if words:
                    cluster.ask(*words, number)
        time.sleep(0.5)
    return ended


@pytest.fixture(scope="module")
def faulty(
    finished: Project, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Project, Ended]:
    """A project after one run without retries in which four jobs were ended, each in a way."""
    cluster.clear()
    project = finished.copy(tmp_path_factory.mktemp("faulty") / "project")
    engines = {"onnxruntime": ["fp32"], "torchscript": ["fp32"], "openvino": ["fp32"]}
    project.configure(**{**SETTINGS, "engines": engines})
    write_profile(project, retries=0, constraint="small|large")
    asked = 'measure_accuracy: {mem_mb: "?mb(16000)"'
    project.edit(f"{PROFILE}/config.yaml", asked, "measure_accuracy: {mem_mb: 99999")
    for path in RECORDS.values():
        (project / path).unlink()
    for rule in ("measure_latency", "build_openvino"):
        give_order(project, rule, HANG)
    give_order(project, "build_torchscript", FILL)
    running = project.start("--profile", PROFILE)
    ended = end_jobs(project, cluster, running)
    output, _ = running.communicate(timeout=30)
    print(output)
    return project, ended


def reason(project: Project, variant: str) -> str:
    return str(project.results()[variant]["reason"])


def test_every_variant_is_in_the_report_and_the_undisturbed_one_is_measured(faulty) -> None:
    project, _ = faulty
    failed = dict.fromkeys((ONNXRUNTIME, TORCHSCRIPT, OPENVINO), "failed")
    assert project.statuses() == {PYTORCH: "ok", **failed}
    page = (project / "reports/summary.html").read_text()
    assert all(variant in page for variant in (PYTORCH, *failed))


def test_a_job_beyond_its_time_fails_its_record_with_the_words_and_the_number_of_slurm(faulty):
    project, ended = faulty
    found = project.read(RECORDS["latency"])
    assert found["status"] == "failed"
    assert "TIMEOUT" in found["reason"]
    assert ended["measure_latency"].number in found["reason"]


def test_a_job_above_its_memory_fails_its_variant_with_the_number_of_slurm(faulty) -> None:
    project, ended = faulty
    # without cgroups Slurm says FAILED, not OUT_OF_MEMORY
    assert re.search("FAILED|OUT_OF_MEMORY", reason(project, TORCHSCRIPT))
    assert ended["build_torchscript"].number in reason(project, TORCHSCRIPT)


def test_a_cancelled_job_fails_its_variant_with_the_words_and_the_number_of_slurm(faulty) -> None:
    project, ended = faulty
    assert "CANCELLED" in reason(project, OPENVINO)
    assert ended["build_openvino"].number in reason(project, OPENVINO)


def test_a_job_that_sbatch_refuses_fails_its_record_with_the_words_of_sbatch(faulty) -> None:
    found = faulty[0].read(RECORDS["accuracy"])
    assert found["status"] == "failed"
    assert "Memory specification can not be satisfied" in found["reason"]
    assert "\n" not in found["reason"]

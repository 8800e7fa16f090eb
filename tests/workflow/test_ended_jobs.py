"""Jobs that end before they can write a failure: the run goes on without them."""

import pytest
from tiny_project import MODEL, ONNX_MODELS, SUMMARY, Project, builds_of, measurements_of

FP32, INT8 = "cpu-openvino-fp32", "cpu-openvino-int8-nncf-8"
BUILD = '    if precision == "int8-bf16":\n        copy'
# The build of fp32 ends its whole job, while the file `fault` is there.
ENDS_ITS_JOB = """    import os, signal

    if precision == "fp32" and Path("fault").exists():
        os.kill(os.getppid(), signal.SIGKILL)
"""
# In the run that goes on, the next job of that variant ends too.
ENDS_TOO = """
import os, signal
if job.wildcards.variant == "cpu-openvino-fp32" and os.path.exists("fault"):
    if not os.path.exists("ended"):
        open("ended", "x").close()
        os.kill(os.getpid(), signal.SIGKILL)
"""
OTHER = "other"
# its data cannot be had, which the job alone can tell
TOO_FEW = {**ONNX_MODELS[MODEL], "splits": {"train": 120, "evaluation": 4000}}


@pytest.fixture(scope="module")
def ended(finished_onnx: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project after a run in which two jobs were killed, and its last report was there before."""
    project = finished_onnx.copy(tmp_path_factory.mktemp("ended") / "project")
    project.edit("scripts/tightrope/engines/openvino.py", BUILD, ENDS_ITS_JOB + BUILD)
    line = "job = current_job(globals())\n"
    project.edit("scripts/measure_accuracy.py", line, line + ENDS_TOO)
    (project / "fault").touch()
    done = project.snakemake()
    assert done.returncode == 1, done.stdout
    (project / "said").write_text(done.stdout)
    return project


def test_a_killed_job_is_a_failed_variant_and_the_report_is_written(ended: Project) -> None:
    found = ended.results()
    assert found[FP32]["status"] == "failed"
    killed = "not built: killed by SIGKILL (out of memory, or from outside)"
    assert found[FP32]["reason"] == killed
    assert found[INT8]["status"] == "ok"
    assert ended.read(SUMMARY)["races"]
    assert found[FP32]["reason"] in (ended / "reports/summary.html").read_text()
    said = (ended / "said").read_text()
    assert "Jobs ended without a result: the run goes on without them." in said
    assert "Report: reports/summary.html" in said
    assert "Traceback" not in said
    # what it wrote before stays
    assert "not built" not in ended.log(f"build_openvino/{MODEL}-cpu-fp32")


def test_the_same_command_tries_what_ended_again_and_nothing_else(ended, copied) -> None:
    project = copied(ended)
    (project / "fault").unlink()
    assert project.plan() == builds_of(FP32) | measurements_of(FP32)


def test_a_model_without_data_is_left_out_and_the_others_are_reported(finished_onnx, copied):
    project = copied(finished_onnx)
    project.configure(models={**ONNX_MODELS, OTHER: TOO_FEW})
    done = project.snakemake()
    assert done.returncode == 1, done.stdout
    # where this CPU has no bf16 a variant of it had failed before
    before = finished_onnx.statuses()
    assert project.statuses() == before
    assert before[FP32] == "ok"
    failed = project.results(OTHER)
    assert {one["status"] for one in failed.values()} == {"failed"}
    for one in failed.values():
        assert one["reason"].startswith(f"prepare data of {OTHER}: ")
        assert "lower splits.train" in one["reason"]
    assert OTHER not in project.read(SUMMARY)["models"]
    assert f"prepare data of {OTHER}" in (project / "reports/summary.html").read_text()
    # the next run tries again
    assert f"prepare_data/{OTHER}" in project.plan()


def test_without_a_model_left_the_last_report_stays(finished_onnx, copied) -> None:
    project = copied(finished_onnx)
    before = (project / "reports/summary.html").read_bytes()
    project.configure(models={MODEL: TOO_FEW})
    done = project.snakemake()
    assert done.returncode == 1, done.stdout
    assert "without a result" not in done.stdout
    assert (project / "reports/summary.html").read_bytes() == before


def test_a_failed_export_leaves_the_engines_of_pytorch(project: Project) -> None:
    project.configure(engines={"onnxruntime": ["fp32"]})
    project.edit(
        "scripts/tightrope/onnx/export.py",
        "    torch.set_num_threads(threads)\n",
        "    raise ValueError('an operator that ONNX does not have')\n",
    )
    done = project.snakemake()
    assert done.returncode == 0, done.stdout
    found = project.results()
    assert found["cpu-pytorch-fp32"]["status"] == "ok"
    reason = "not built: not exported: ValueError: an operator that ONNX does not have"
    assert found["cpu-onnxruntime-fp32"]["reason"] == reason
    assert project.plan() == set()

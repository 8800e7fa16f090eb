"""What cannot run on this machine or fails is in the report with its reason; the rest runs.

What a CPU would emulate: tests/unit/plan/test_plan.py.
"""

import os
import re
from copy import deepcopy
from pathlib import Path

from tiny_project import CONFIG, MODEL, SUMMARY, Project

COMPILED = ("cpu-compile-fp32", "cpu-inductor-bf16", "cpu-tvm-fp32")


def without_compiler(folder: Path) -> str:
    """A PATH that has every program of this one but the compilers of C++."""
    for place in os.environ["PATH"].split(":"):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if "g++" not in program.name and "clang" not in program.name:
                link = folder / program.name
                if not link.is_symlink():
                    link.symlink_to(program)
    return str(folder)


def test_without_a_compiler_what_needs_one_is_unavailable_and_the_rest_runs(project, tmp_path):
    path = tmp_path / "programs"
    path.mkdir()
    engines = {"compile": ["fp32"], "inductor": ["bf16"], "tvm": ["fp32"], "pytorch": ["fp32"]}
    project.configure(engines=engines)
    jobs = project.run(PATH=without_compiler(path))
    assert not [job for job in jobs if any(word in job for word in ("compile", "inductor", "tvm"))]
    found = project.results().items()
    reasons = {name: one["reason"] for name, one in found if one["status"] == "unavailable"}
    assert set(reasons) == set(COMPILED)
    assert all("no C++ compiler: install g++" in reason for reason in reasons.values())
    assert "no C++ compiler" in (project / "reports/summary.html").read_text()


def test_an_own_onnx_file_is_measured_without_a_checkpoint(finished_onnx: Project) -> None:
    summary = finished_onnx.read(SUMMARY)
    found = finished_onnx.results()
    assert summary["models"][MODEL]["baselines"] == {"cpu": "cpu-onnxruntime-fp32"}
    assert found["cpu-openvino-fp32"]["baseline"] == "cpu-onnxruntime-fp32"
    assert found["cpu-openvino-fp32"]["accuracy"]["flips"] == 0
    assert found["cpu-openvino-fp32"]["latency"][0]["speedup"] is not None
    assert found["cpu-onnxruntime-fp32"]["latency"][0]["speedup"] is None
    assert found["cpu-onnxruntime-int8-minmax-8"]["status"] == "ok"
    assert finished_onnx.plan() == set()


def test_a_training_that_fails_is_a_record_in_the_report_and_counts_for_strict(project) -> None:
    models = deepcopy(CONFIG["models"])
    models[MODEL]["train"]["learning_rate"] = 1e13
    project.configure(training={"epochs": 2, "seeds": [0, 1]}, models=models, strict=True)
    rules = ("measure_training", "summarize", "render_report")
    done = project.snakemake("--allowed-rules", *rules)
    found = project.read(f"reports/{MODEL}/training.json")
    assert found["status"] == "failed"
    diverged = "training diverged (loss is NaN or infinite)"
    assert found["reason"].startswith(f"train: {diverged}; lower train.")
    # where this CPU has no bf16 a variant of it has failed too
    assert re.search(rf"strict: .*{MODEL}/training: train: training diverged", done.stdout)
    assert done.returncode == 1
    assert re.search(rf"failed, the report says why: .*{MODEL}/training", done.stdout)
    assert diverged in (project / "reports/summary.html").read_text()

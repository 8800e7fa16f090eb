"""What this machine or this model cannot run is in the report with its reason; the rest runs."""

import json
import os
from pathlib import Path

import onnx
import pytest
from tightrope.machine.host import describe_host
from tiny_project import MODEL, Project

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


def test_without_a_compiler_what_needs_one_is_unavailable_and_the_rest_runs(
    project: Project, tmp_path: Path
) -> None:
    path = tmp_path / "programs"
    path.mkdir()
    engines = {"compile": ["fp32"], "inductor": ["bf16"], "tvm": ["fp32"], "pytorch": ["fp32"]}
    project.configure(engines=engines)
    jobs = project.run(PATH=without_compiler(path))
    assert not [job for job in jobs if any(word in job for word in ("compile", "inductor", "tvm"))]
    results = json.loads((project / "reports/summary.json").read_text())["results"]
    reasons = {one["variant"]: one["reason"] for one in results if one["status"] == "unavailable"}
    assert set(reasons) == set(COMPILED)
    assert all("no C++ compiler: install g++" in reason for reason in reasons.values())
    assert "no C++ compiler" in (project / "reports/summary.html").read_text()


@pytest.mark.skipif("asimdhp" in describe_host()["isa"], reason="this CPU computes in fp16")
def test_what_the_cpu_would_emulate_is_unavailable_unless_it_is_asked_for(
    project: Project,
) -> None:
    engines = {"onnxruntime": ["fp16", "int8"]}
    project.configure(engines=engines, emulated=False)
    jobs = project.run()
    assert f"build_onnxruntime/{MODEL}-cpu-fp32" in jobs
    assert not [job for job in jobs if "fp16" in job]
    results = json.loads((project / "reports/summary.json").read_text())["results"]
    found = {one["variant"]: (one["status"], one["reason"]) for one in results}
    status, reason = found["cpu-onnxruntime-fp16"]
    assert status == "unavailable"
    assert reason.startswith("this CPU has no fp16 instructions")
    assert found["cpu-onnxruntime-fp32"][0] == "ok"
    assert reason in (project / "reports/summary.html").read_text()
    project.configure(engines=engines, emulated=True)
    assert f"build_onnxruntime/{MODEL}-cpu-fp16" in project.run()
    results = json.loads((project / "reports/summary.json").read_text())["results"]
    found = {one["variant"]: (one["status"], one["reason"]) for one in results}
    status, reason = found["cpu-onnxruntime-fp16"]
    assert status == "failed"
    assert reason.endswith("ran in fp32: no matrix product ran in fp16")


def test_an_own_onnx_file_goes_through_without_a_checkpoint(
    finished: Project, unrun: Project
) -> None:
    model = onnx.load(finished / f"artifacts/{MODEL}/model.onnx")
    renamed = {"input_ids": "ids", "attention_mask": "mask"}
    for node in model.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
    for one in model.graph.input:
        one.name = renamed[one.name]
    onnx.save(model, unrun / "own.onnx")
    tokenizer = finished / f"artifacts/{MODEL}/checkpoint/tokenizer.json"
    (unrun / "tokenizer.json").write_bytes(tokenizer.read_bytes())
    facts = {
        "checkpoint": "onnx:own.onnx",
        "data": "files:texts.csv",
        "splits": {"train": 120, "evaluation": 40},
        "max_sequence": 16,
    }
    engines = {"pytorch": ["bf16"], "onnxruntime": ["fp32", "int8"], "openvino": ["fp32"]}
    unrun.configure(models={"own": facts}, engines=engines)
    done = unrun.snakemake()
    assert done.returncode != 0
    assert "its inputs are ids, mask; expected are input_ids, attention_mask" in done.stdout
    unrun.configure(models={"own": {**facts, "inputs": renamed}}, engines=engines)
    unrun.run()
    summary = json.loads((unrun / "reports/summary.json").read_text())
    results = {one["variant"]: one for one in summary["results"]}
    assert summary["models"]["own"]["baselines"] == {"cpu": "cpu-onnxruntime-fp32"}
    assert results["cpu-pytorch-bf16"]["reason"] == "no checkpoint: the model is an ONNX file"
    assert results["cpu-openvino-fp32"]["baseline"] == "cpu-onnxruntime-fp32"
    assert results["cpu-openvino-fp32"]["accuracy"]["flips"] == 0
    assert results["cpu-openvino-fp32"]["latency"][0]["speedup"] is not None
    assert results["cpu-onnxruntime-fp32"]["latency"][0]["speedup"] is None
    assert results["cpu-onnxruntime-int8-minmax-8"]["status"] == "ok"
    assert unrun.plan() == set()
    path = unrun / "scripts/tightrope/onnx/imported.py"
    path.write_text(path.read_text() + "\nCHANGED = True\n")
    assert {"prepare_checkpoint/own", "train_model/own"} <= unrun.plan()

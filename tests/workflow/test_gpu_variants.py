"""Variants for a GPU are planned and ask for one; without one each is unavailable or failed."""

import re

import pytest
import torch
from tightrope.machine.nvml import nvidia_gpu
from tiny_project import MODEL

WITHOUT = pytest.mark.skipif(nvidia_gpu()[0] is not None, reason="this machine has an NVIDIA GPU")
ENGINES = {
    "pytorch": ["fp32", "fp16"],
    "onnxruntime": ["fp32"],
    "tensorrt": ["fp16", "int8-fp16", "fp8"],
}
ON_GPU = {
    "cuda-pytorch-fp32",
    "cuda-pytorch-fp16",
    "cuda-onnxruntime-fp32",
    "cuda-tensorrt-fp16",
    "cuda-tensorrt-int8-fp16-minmax-8",
    "cuda-tensorrt-fp8-minmax-8",
}


@WITHOUT
def test_without_a_gpu_its_variants_are_unavailable_unless_they_are_asked_for_outright(unrun):
    unrun.configure(devices="auto", engines=ENGINES)
    done = unrun.snakemake("--dry-run", "--verbose")
    assert done.returncode == 0, done.stdout
    assert not [job for job in unrun.jobs(done) if "cuda-" in job]
    assert "unavailable: tiny/cuda-pytorch-fp32, " in done.stdout
    unrun.configure(devices=["cuda"], engines=ENGINES)
    jobs = unrun.plan()
    assert {job.partition("/")[2] for job in jobs if job.startswith("measure_latency/")} == {
        f"{MODEL}-{variant}" for variant in ON_GPU
    }
    assert {f"quantize_onnx/{MODEL}-{scheme}-minmax-8" for scheme in ("s8s8", "e4m3")} <= jobs
    # a job on a GPU asks for one, and no other job does
    unrun.configure(devices=["cpu", "cuda"], engines=ENGINES)
    done = unrun.snakemake("--dry-run", "--verbose")
    blocks = re.findall(r"^(?:local)?rule \w+:\n(?:    .*\n)+", done.stdout, re.MULTILINE)
    asking = {block for block in blocks if re.search(r"^    resources: .*\bgpu=1\b", block, re.M)}
    needing = {block for block in blocks if re.search(r"^    log: .*cuda[-.]", block, re.M)}
    assert asking == needing
    assert len(needing) > 3 * len(ON_GPU) - 1


@WITHOUT
def test_without_a_gpu_what_was_forced_fails_in_one_line_and_the_rest_is_as_it_was(project) -> None:
    """Which engine reads which setting of `cuda`: tests/unit/plan/test_plan.py."""
    engines = {"torchscript": ["fp16"], "tensorrt": ["fp16"], "onnxruntime": ["int8"]}
    project.configure(devices=["cpu", "cuda"], engines=engines)
    jobs = project.run()
    assert not [job for job in jobs if job.startswith("build_") and "-cpu-" in job]
    found = project.results()
    forced = {variant for variant in found if variant.startswith("cuda-")}
    assert len(forced) == 3
    assert {found[variant]["status"] for variant in set(found) - forced} == {"ok"}
    for variant in forced:
        assert found[variant]["status"] == "failed"
        reason = found[variant]["reason"]
        assert "\n" not in reason
        remedies = ("envs/gpu.txt", "no NVIDIA GPU")
        assert any(words in reason for words in remedies), reason
    assert "tensorrt cannot be imported" in found["cuda-tensorrt-fp16"]["reason"]
    lacking = "no NVIDIA GPU" if torch.version.cuda else "built without CUDA"
    assert lacking in found["cuda-pytorch-fp32"]["reason"]
    assert project.plan() == set()

"""`make gpu-check` on a machine without a GPU: what it says, and its direct part on the CPU."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from programs import run_in
from tightrope.machine import counters, nvml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/gpu"
COPY = "pytorch-fp32, a second copy"
# an environment in which the packages of the first words are not installed, and those of the second
# are imported at once, not by each of the children: their files are the same
WITHOUT = """
import importlib, runpy, sys
from importlib.machinery import PathFinder
missing, imported = sys.argv.pop(1).split(","), sys.argv.pop(1).split()
class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        known = name.partition(".")[0] not in missing
        return super().find_spec(name, path, target) if known else None
sys.meta_path[:] = [Finder if one is PathFinder else one for one in sys.meta_path]
sys.path.insert(0, sys.argv[1].rpartition("/")[0])
del sys.argv[0]
for name in imported:
    importlib.import_module(name)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def on_path() -> Any:
    """The folder of the check, which is no package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield


def checked(
    folder: Path, *options: str, missing: str = "nothing", imported: str = ""
) -> tuple[Any, str, int]:
    words = ("-c", WITHOUT, missing, imported, FOLDER / "check.py", *options, "--out", folder)
    done = run_in(ROOT, *words)
    file = folder / "gpu-check.json"
    return json.loads(file.read_text()) if file.exists() else None, done.stdout, done.returncode


@pytest.mark.skipif(nvml.nvidia_gpu()[0] is not None, reason="this machine has an NVIDIA GPU")
@pytest.mark.parametrize("missing", ["nothing", "pynvml,snakemake"])
def test_without_a_gpu_nothing_is_run_whatever_is_installed(missing: str, tmp_path: Path) -> None:
    found, output, code = checked(tmp_path, missing=missing)
    assert (found, code) == (None, 1)
    assert "NVML names no visible NVIDIA GPU; nothing was run" in output
    assert ("nvidia-ml-py is not installed" in output) is (missing != "nothing")


def test_the_direct_part_runs_on_a_cpu_with_pytorch_and_without_the_rest(tmp_path: Path) -> None:
    """The ratio to a second copy has an interval around 1 on a quiet machine alone."""
    options = ["--device", "cpu", "--tiny", "--case", COPY]
    missing = "pynvml,snakemake,pytest,onnx"
    imported = "torch transformers.models.bert.modeling_bert"
    found, output, _ = checked(tmp_path, *options, missing=missing, imported=imported)
    parts = found["parts"]
    assert found["not_installed"] == ["pynvml"]
    assert {parts[name]["result"] for name in ("tests", "pipeline")} == {"not run: --device cpu"}
    direct = parts["direct"]
    assert set(direct["each"]) == {"pytorch-fp32", COPY}
    assert {"fp32", "int8"} <= set(direct["peaks_per_s"])
    for case in direct["each"].values():
        assert case["status"] == "ok", case
        assert [(row["batch"], row["sequence"]) for row in case["rows"]] == [(1, 32), (4, 32)]
        assert all(0 < row["mean_s"] < 5 and row["throughput_per_s"] > 0 for row in case["rows"])
        assert all(0 < row["share_of_peak"] < 2 for row in case["rows"])
        assert {row["gpu"] for row in case["rows"]} == {row["device_p50_s"] for row in case["rows"]}
    for row in direct["each"][COPY]["rows"]:
        ratio = row["speedup"]
        assert ratio["low"] < ratio["ratio"] < ratio["high"]
    assert len(direct["tie"]) == 2
    assert all(case["seconds"] > 0 for case in direct["each"].values())
    assert f"{COPY}, 4x32: " in output


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("torchscript-fp8", "impossible variant, torchscript on cpu has fp32, bf16"),
        ("pytorch-fp32", "checkpoint.json"),
    ],
)
def test_an_engine_that_cannot_be_built_is_one_line(on_path, name, reason, tmp_path) -> None:
    from direct import Bench, Case, lines_of

    found = Bench(tmp_path, "cpu", tiny=True).case(Case(name), {})
    assert found["status"] == "failed"
    (line,) = lines_of(name, found)
    assert line.startswith(f"{name}: failed: ")
    assert reason in line and "\n" not in line


def test_without_nvidia_ml_py_the_gpu_has_a_name_and_nothing_else_is_known(on_path, monkeypatch):
    import stand_ins

    module: ModuleType = stand_ins.pynvml()
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr(stand_ins, "driver_version", lambda: "580.65.06")
    monkeypatch.setattr(stand_ins, "gpu_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(stand_ins, "gpu_uuid", lambda: "0a1b")
    assert nvml.nvidia_gpu() == ("NVIDIA H200", "580.65.06", "GPU-0a1b")
    gpu = nvml.held_gpu()
    assert gpu is not None
    assert set(nvml.GpuReader(gpu).read().values()) == {None}
    assert counters.gpu_meter(gpu) is None
    monkeypatch.setattr(stand_ins, "gpu_name", lambda: None)
    assert nvml.nvidia_gpu() == nvml.Gpu()


def test_engines_on_a_gpu_get_the_options_that_they_read(on_path: None, tmp_path: Path) -> None:
    from direct import IN_BRIEF, ON_GPU, Bench

    bench = Bench(tmp_path, "cuda", tiny=False)
    assert [case.name for case in IN_BRIEF[:3]] == ["pytorch-fp32", "pytorch-bf16", "pytorch-tf32"]
    options = {case.name: bench.options(case) for case in (*ON_GPU, *IN_BRIEF)}
    buckets = {"buckets": {"batch": [1, 32], "sequence": [128]}}
    assert options["pytorch-fp32"] == options[COPY] == {"attention": "auto"}
    assert options["torchscript-fp16"] == {"graphs": True, **buckets}
    compiled = {"attention": "auto", "autotune": False, **buckets}
    assert options["compile-fp16"] == {**compiled, "graphs": True}
    assert options["compile-fp16, no CUDA graph"] == {**compiled, "graphs": False}


@pytest.mark.parametrize(
    ("low", "high", "right"),
    [(1.004, 1.008, True), (0.975, 0.985, True), (1.04, 1.06, False), (None, None, False)],
)
def test_a_second_copy_may_be_as_much_slower_as_two_processes_are(on_path, low, high, right):
    from direct import same

    assert same({"rows": [{"speedup": {"ratio": low, "low": low, "high": high}}]}) == [right]


def test_the_tests_for_a_gpu_are_collected_where_packages_have_a_stand_in() -> None:
    missing = "pynvml,snakemake,onnx,onnxslim,openvino,nncf,torchao,xdist"
    words = ["-m", "gpu", "tests/gpu", "--collect-only", "-q", "-p", "no:cacheprovider"]
    program = WITHOUT.replace("run_path(sys.argv[0]", 'run_module("pytest"')
    words = ["-c", program, missing, "", FOLDER / "check.py", "-p", "stand_ins", *words]
    done = run_in(ROOT, *words, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "test_a_busy_gpu_has_clocks" in done.stdout, done.stdout + done.stderr

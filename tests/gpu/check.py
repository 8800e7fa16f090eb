"""`make gpu-check`: the tests marked gpu and a small run of the pipeline on this machine's GPU.

It needs only what is installed, says what that is, what ran, and what was unavailable and why.
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

try:
    import pynvml  # noqa: F401, imported where it is used
    from tightrope.artifacts.provenance import library_version
    from tightrope.machine.gpu import driver_cuda, missing_packages
    from tightrope.machine.nvml import nvidia_gpu
except ModuleNotFoundError as error:
    sys.exit(f"gpu-check: {error.name} is not installed in {sys.executable}; nothing was run")

PACKAGES = ("torch", "onnxruntime-gpu", "tensorrt-cu13", "polygraphy", "torchao", "triton")
ENGINES = ("pytorch", "onnxruntime", "onnxruntime_tensorrt", "tensorrt")


def main() -> int:
    """Print what is here, run what can, and give 1 where something that ran went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="keep the report and the summary in this folder")
    chosen = parser.parse_args()
    gpu, driver = nvidia_gpu()
    cuda = ".".join(map(str, driver_cuda() or ())) or "none"
    print(f"GPU: {gpu or 'none'}; driver: {driver or 'none'}; CUDA up to: {cuda}")
    print(", ".join(f"{name} {library_version(name) or 'not installed'}" for name in PACKAGES))
    for engine in ENGINES:
        print(f"{engine}: {missing_packages(engine) or 'installed'}")
    if gpu is None:
        print("gpu-check: NVML names no visible NVIDIA GPU; nothing was run")
        return 1
    results = {"tests marked gpu": tests(), "pipeline": pipeline(chosen.out)}
    print("; ".join(f"{name}: {result}" for name, result in results.items()))
    return int("failed" in results.values())


def tests() -> str:
    """Run the tests; `passed`, `failed` or why they were not run."""
    if importlib.util.find_spec("pytest") is None:
        return "not run, pytest is not installed"
    words = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/gpu"]
    return "failed" if subprocess.run(words, cwd=ROOT, check=False).returncode else "passed"


def pipeline(out: Path | None) -> str:
    """Run it in a copy of the project; `passed`, `failed` or why it was not run."""
    missing = [
        name
        for name in ("snakemake", "altair", "vl_convert", "onnxslim", "jsonschema", "rich")
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        return f"not run, {', '.join(missing)} not installed"
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        ignored = shutil.ignore_patterns(".*", "artifacts", "reports", "shared", "__pycache__")
        shutil.copytree(ROOT, project, ignore=ignored)
        words = [sys.executable, "-m", "snakemake", "--cores", str(os.cpu_count())]
        words += ["reports/summary.html", "--configfile", "tests/gpu/config.yaml"]
        # the scripts of the pipeline find their `python` there
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(words, cwd=project, check=False, env={**os.environ, "PATH": programs})
        if done.returncode:
            return "failed"
        results = json.loads((project / "reports/summary.json").read_text())["results"]
        if out is not None:
            shutil.copytree(project / "reports", out, dirs_exist_ok=True)
    for result in results:
        print(in_words(result))
    failed = [one for one in results if one["device"] == "cuda" and one["status"] == "failed"]
    return "failed" if failed else "passed"


def in_words(result: dict) -> str:
    """One line of the table: the variant, and its times or why it has none."""
    if result["status"] != "ok":
        return f"{result['variant']}: {result['status']}: {result['reason']}"
    times = [
        f"{row['batch']}x{row['sequence']} {row['mean_s'] * 1e3:.3f} ms"
        + (f" ({row['device_p50_s'] * 1e3:.3f} on the GPU)" if row["device_p50_s"] else "")
        for row in result["latency"]
    ]
    return f"{result['variant']}: {'; '.join(times)}"


if __name__ == "__main__":
    sys.exit(main())

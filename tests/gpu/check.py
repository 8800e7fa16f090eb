"""`make gpu-check`: the tests marked gpu and a small run of the pipeline on this machine's GPU.

It needs only what is installed: of each part it says what is missing, runs the rest, and writes
what was found to one JSON file (`--out`).
"""

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

try:
    import pynvml  # noqa: F401, imported where it is used
    from tightrope.artifacts.provenance import library_version
    from tightrope.machine.gpu import driver_cuda, missing_packages
    from tightrope.machine.nvml import nvidia_gpu
    from tightrope.runtimes.buckets import in_words as shape_in_words
    from tightrope.summary.results import shape_of
except ModuleNotFoundError as error:
    sys.exit(f"gpu-check: {error.name} is not installed in {sys.executable}; nothing was run")

PACKAGES = (
    *("torch", "onnxruntime-gpu", "tensorrt-cu13", "polygraphy", "torch-tensorrt", "torchao"),
    "triton",
)
ENGINES = ("pytorch", "onnxruntime", "onnxruntime_tensorrt", "tensorrt", "torch_tensorrt")
# what each part needs besides PyTorch and transformers
NEEDED = {"tests": ("pytest",), "pipeline": ("snakemake", "onnxslim")}
# the report itself; without them the run ends with the summary
FOR_THE_REPORT = ("altair", "vl_convert", "jsonschema")
Part = dict[str, Any]


def main() -> int:
    """Print what is here, run what can, write it down, and give 1 where something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = ROOT / "reports/gpu-check"
    parser.add_argument("--out", type=Path, default=default, help="folder (%(default)s)")
    out: Path = parser.parse_args().out
    gpu, driver, uuid = nvidia_gpu()
    cuda = ".".join(map(str, driver_cuda() or ())) or None
    found: Part = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": sys.version.split()[0],
        **{"gpu": gpu, "gpu_uuid": uuid, "driver": driver, "cuda_of_driver": cuda},
        "packages": {name: library_version(name) for name in PACKAGES},
        "engines": {engine: missing_packages(engine) or "installed" for engine in ENGINES},
    }
    print(f"GPU: {gpu or 'none'}; driver: {driver or 'none'}; CUDA up to: {cuda or 'none'}")
    print(", ".join(f"{name} {one or 'not installed'}" for name, one in found["packages"].items()))
    for engine, state in found["engines"].items():
        print(f"{engine}: {state}")
    if gpu is None:
        print("gpu-check: NVML names no visible NVIDIA GPU; nothing was run")
        return 1
    parts = {"tests": tests, "pipeline": pipeline}
    found["parts"] = {name: run_part(name, part, out) for name, part in parts.items()}
    out.mkdir(parents=True, exist_ok=True)
    (out / "gpu-check.json").write_text(json.dumps(found, indent=1) + "\n")
    print("; ".join(f"{name}: {part['result']}" for name, part in found["parts"].items()))
    print(f"all of it: {out / 'gpu-check.json'}")
    return int(any(part["result"] == "failed" for part in found["parts"].values()))


def run_part(name: str, part: Any, out: Path) -> Part:
    """Run a part; its `result` is `passed`, `failed` or why it was not run."""
    missing = absent(NEEDED[name])
    if missing:
        return {"result": f"not run: {', '.join(missing)} not installed"}
    return dict(part(out))


def absent(modules: tuple[str, ...]) -> list[str]:
    """Return those of the modules that are not installed."""
    return [name for name in modules if importlib.util.find_spec(name) is None]


def tests(out: Path) -> Part:
    """Run the tests; also return how each of them ended."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        words = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/gpu"]
        done = subprocess.run([*words, f"--junitxml={results}"], cwd=ROOT, check=False)
        cases = list(ElementTree.parse(results).iter("testcase")) if results.is_file() else []
    each = {case.attrib["name"]: how_it_ended(case) for case in cases}
    counts = Counter(one.partition(":")[0] for one in each.values())
    result = "failed" if done.returncode or not each else "passed"
    return {"result": result, "counts": dict(counts), "each": each}


def how_it_ended(case: ElementTree.Element) -> str:
    """Return `passed`, or `failed`, `error` or `skipped` with the reason."""
    for child in case:
        if child.tag in ("failure", "error", "skipped"):
            reason = (child.attrib.get("message") or "").splitlines() or [""]
            return f"{'failed' if child.tag == 'failure' else child.tag}: {reason[0][:300]}"
    return "passed"


def pipeline(out: Path) -> Part:
    """Run it in a copy of the project; also return a line for each variant."""
    target = "reports/summary.json" if absent(FOR_THE_REPORT) else "reports/summary.html"
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        ignored = shutil.ignore_patterns(".*", "artifacts", "reports", "shared", "__pycache__")
        shutil.copytree(ROOT, project, ignore=ignored)
        words = [sys.executable, "-m", "snakemake", "--cores", str(os.cpu_count())]
        words += [target, "--configfile", "tests/gpu/config.yaml"]
        # the scripts of the pipeline find their `python` there
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(words, cwd=project, check=False, env={**os.environ, "PATH": programs})
        if (project / "reports").is_dir():
            shutil.copytree(project / "reports", out, dirs_exist_ok=True)
        if done.returncode:
            return {"result": "failed", "target": target}
        results = json.loads((project / "reports/summary.json").read_text())["results"]
    each = [in_words(result) for result in results]
    print("\n".join(each))
    failed = any(one["device"] == "cuda" and one["status"] == "failed" for one in results)
    return {"result": "failed" if failed else "passed", "target": target, "each": each}


def in_words(result: dict) -> str:
    """One line of the table: the variant, and its times or why it has none."""
    if result["status"] != "ok":
        return f"{result['variant']}: {result['status']}: {result['reason']}"
    times = [
        f"{shape_in_words(tuple(shape_of(row).values()))} {row['mean_s'] * 1e3:.3f} ms"
        + (f" ({row['device_p50_s'] * 1e3:.3f} on the GPU)" if row["device_p50_s"] else "")
        for row in result["latency"]
    ]
    return f"{result['variant']}: {'; '.join(times)}"


if __name__ == "__main__":
    sys.exit(main())

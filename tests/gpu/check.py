"""`make gpu-check`: engines, the tests marked gpu and a small run of the pipeline, on this GPU.

It needs only what is installed: of each part it says what is missing, runs the rest, and writes
what was found to one JSON file (`--out`). The part `direct` needs the least, and runs on a CPU too
(`--device cpu`).
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
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import stand_ins

FOLDER = Path(__file__).parent.absolute()
ROOT = FOLDER.parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
# what is not installed and has a stand-in
STOOD_IN = stand_ins.install()

try:
    from tightrope.artifacts.provenance import library_version
    from tightrope.machine.lacks import driver_cuda, missing_packages, refusal_of_gpu
    from tightrope.machine.nvml import nvidia_gpu
    from tightrope.runtimes.shapes import in_words as shape_in_words
except ModuleNotFoundError as error:
    sys.exit(f"gpu-check: {error.name} is not installed in {sys.executable}; nothing was run")

PACKAGES = ("torch", "onnxruntime-gpu", "tensorrt-cu13", "polygraphy", "torchao", "triton")
ENGINES = ("pytorch", "onnxruntime", "tensorrt")
# what each part needs
TORCH = ("torch", "transformers", "msgspec", "psutil", "scipy")
NEEDED = {
    "direct": TORCH,
    "tests": (*TORCH, "PIL", "pandas", "pytest"),
    "pipeline": (*TORCH, "pynvml", "snakemake", "rich", "onnxslim"),
}
# the report itself; without them the run ends with the summary
FOR_THE_REPORT = ("altair", "vl_convert", "jsonschema")
Part = dict[str, Any]


def main() -> int:
    """Print what is here, run what can, write it down, and give 1 where something went wrong."""
    chosen = parsed()
    gpu, driver, uuid = nvidia_gpu()
    cuda = ".".join(map(str, driver_cuda() or ())) or None
    found: Part = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": sys.version.split()[0],
        **{"gpu": gpu, "gpu_uuid": uuid, "driver": driver, "cuda_of_driver": cuda},
        "packages": {name: library_version(name) for name in PACKAGES},
        "not_installed": STOOD_IN,
        "engines": {engine: missing_packages(engine) or "installed" for engine in ENGINES},
        "parts": {},
    }
    print(f"GPU: {gpu or 'none'}; driver: {driver or 'none'}; CUDA up to: {cuda or 'none'}")
    print(", ".join(f"{name} {one or 'not installed'}" for name, one in found["packages"].items()))
    for engine, state in found["engines"].items():
        print(f"{engine}: {state}")
    if "pynvml" in STOOD_IN:
        print("nvidia-ml-py is not installed: energy, clocks and processes are not known")
    if gpu is None and chosen.device == "cuda":
        print("gpu-check: NVML names no visible NVIDIA GPU; nothing was run (--device cpu: direct)")
        return 1
    if chosen.device == "cuda" and (refused := refusal_of_gpu()):
        print(f"gpu-check: {refused}; nothing was run")
        return 1
    for name in chosen.part or PARTS:

        def keep(part: Part, name: str = name) -> None:
            found["parts"][name] = part
            write(chosen.out / "gpu-check.json", found)

        keep(run_part(name, chosen, keep))
    print("; ".join(f"{name}: {part['result']}" for name, part in found["parts"].items()))
    print(f"all of it: {chosen.out / 'gpu-check.json'}")
    return int(any(part["result"] == "failed" for part in found["parts"].values()))


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--out", type=Path, default=ROOT / "reports/gpu-check", help="folder (%(default)s)")
    add("--part", action="append", choices=PARTS, help="run this part alone; may be repeated")
    add("--device", choices=("cuda", "cpu"), default="cuda", help="of the part direct")
    add("--tiny", action="store_true", help="a tiny model in the part direct, timed briefly")
    add("--brief", action="store_true", help="the part direct alone, in less than four minutes")
    add("--case", action="append", default=[], help="of the part direct, such as compile-fp16")
    chosen = parser.parse_args()
    if chosen.brief:
        chosen.part = ["direct"]
    return chosen


def write(path: Path, found: Part) -> None:
    """Write what was found so far."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


def run_part(name: str, chosen: argparse.Namespace, keep: Callable[[Part], None]) -> Part:
    """Run a part; its `result` is `passed`, `failed` or why it was not run."""
    if chosen.device == "cpu" and name != "direct":
        return {"result": "not run: --device cpu"}
    missing = absent(NEEDED[name])
    if missing:
        return {"result": f"not run: {', '.join(missing)} not installed"}
    return dict(PARTS[name](chosen, keep))


def absent(modules: tuple[str, ...]) -> list[str]:
    """Return those of the modules that are not installed."""
    return [name for name in modules if name in STOOD_IN or importlib.util.find_spec(name) is None]


def direct(chosen: argparse.Namespace, keep: Callable[[Part], None]) -> Part:
    """Build and time engines of PyTorch, see direct.py; `keep` gets what is known so far."""
    from direct import run

    with tempfile.TemporaryDirectory() as folder:
        options = {"tiny": chosen.tiny, "brief": chosen.brief, "names": chosen.case, "keep": keep}
        return dict(run(Path(folder), chosen.device, **options))


def tests(chosen: argparse.Namespace, keep: Callable[[Part], None]) -> Part:
    """Run the tests; also return how each of them ended."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        words = [sys.executable, "-m", "pytest", "-p", "stand_ins", "-q", "-m", "gpu", "tests/gpu"]
        found = {**os.environ, "PYTHONPATH": f"{FOLDER}:{os.environ.get('PYTHONPATH', '')}"}
        words.append(f"--junitxml={results}")
        done = subprocess.run(words, cwd=ROOT, check=False, env=found)
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


def pipeline(chosen: argparse.Namespace, keep: Callable[[Part], None]) -> Part:
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
            shutil.copytree(project / "reports", chosen.out, dirs_exist_ok=True)
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
        f"{shape_in_words(tuple(row['shape'].values()))} {row['mean_s'] * 1e3:.3f} ms"
        + (f" ({row['device_p50_s'] * 1e3:.3f} on the GPU)" if row["device_p50_s"] else "")
        for row in result["latency"]
    ]
    return f"{result['variant']}: {'; '.join(times)}"


PARTS = {"direct": direct, "tests": tests, "pipeline": pipeline}

if __name__ == "__main__":
    sys.exit(main())

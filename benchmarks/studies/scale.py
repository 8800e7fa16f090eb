"""What planning, summarizing and rendering cost with many variants: CPU seconds and memory.

    .venv/bin/python benchmarks/studies/scale.py 300 1000 3000 --parts plan,parse,dry-run,summarize

Makes a project with a configuration of each number of variants, 200 a model, and prints a row of
a Markdown table for each part. CPU seconds are those of the part's process and its children, which
other load changes little. Memory is that of all of them at the same time, each shared page once;
what summarizes has PROCESSES of them. Looking at memory slows a part down: with `--elapsed`, for an
idle machine, it is only that of the largest process. Nothing is built or measured: the records that
are summarized are made up, and valid; what is rendered is their summary.
`--profile FILE` keeps a profile for `pstats`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import yaml

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
sys.path.insert(0, str(Path(__file__).parent))

from scale_records import write_records
from tightrope.machine.processes import proportional_bytes
from tightrope.plan.config import checked
from tightrope.plan.plan import Plan, make_plan

REPOSITORY = Path(__file__).parents[2]
SCHEMA = REPOSITORY / "config/schema.yaml"
# what of the project a run needs
LINKED = ("Snakefile", "rules", "scripts", "profiles", "envs", "config")
# of the variants of a model two are in float, the rest is these products
METHODS = ("minmax", "entropy", "percentile")
FLOAT, REPAIRS, A_MODEL = 2, 10, 200
PROCESSES = 2
# seconds between two looks at memory, which walk through all page tables
EVERY_S = 0.5

PLAN = """
import yaml
from tightrope.plan.config import checked
from tightrope.plan.plan import make_plan
make_plan(checked(yaml.load(open("many.yaml"), yaml.CSafeLoader), "config/schema.yaml"))
"""
SUMMARIZE = f"""
import json
from tightrope.summary.inputs import Inputs, Settings
from tightrope.summary.summarize import summarize
inputs, settings = (json.load(open(name)) for name in ("inputs.json", "settings.json"))
inputs, settings = Inputs(**inputs), Settings(**settings)
summarize(inputs, settings, json_target="s.json", csv_target="s.csv", processes={PROCESSES})
"""
RENDER = """
import json
from pathlib import Path
from tightrope.report.page import render_page
template = Path("scripts/tightrope/report/template")
models = json.load(open("settings.json"))["baselines"]
render_page(
    Path("s.json"),
    Path("reports/summary.html"),
    template=sorted(template.glob("*.html")),
    style=template / "page.css",
    script=template / "page.js",
    pages=[Path(f"reports/pages/{model}.html") for model in models],
)
"""
SNAKEMAKE = ["-m", "snakemake", "--configfile", "many.yaml", "--cores", "2"]
# arguments of Python; listing the rules is parsing the Snakefile, as each job does before its work
PARTS = {
    "plan": ["plan.py"],
    "parse": [*SNAKEMAKE, "--list-rules"],
    "dry-run": [*SNAKEMAKE, "--dry-run"],
    "summarize": ["summarize.py"],
    "render": ["render.py"],
}


def main() -> None:
    """Print a table with a row for each part and number of variants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variants", type=int, nargs="+")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--elapsed", action="store_true")
    parser.add_argument("--profile", type=Path, default=None)
    options = parser.parse_args()
    print("| variants | part | CPU s | elapsed s | peak MB |\n| ---: | --- | ---: | ---: | ---: |")
    for variants in options.variants:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            plan = write_project(configuration(variants))
            if "summarize" in options.parts:
                write_inputs(plan)
            for part in options.parts.split(","):
                seconds, elapsed, peak = measured(PARTS[part], options)
                figures = f"{seconds:.2f} | {elapsed:.1f} | {peak / 1e6:.0f}"
                print(f"| {len(plan.jobs)} | {part} | {figures} |", flush=True)
            os.chdir(REPOSITORY)


def configuration(variants: int) -> dict[str, Any]:
    """Return a configuration of about so many variants, A_MODEL a model."""
    models = max(1, round(variants / A_MODEL))
    counts = max(1, round((variants / models - FLOAT) / (len(METHODS) * (REPAIRS + 1))))
    return {
        "models": {
            f"model{number:04}": {"checkpoint": "scratch:bert", "data": "random", "seed": number}
            for number in range(models)
        },
        "devices": ["cpu"],
        "engines": {"pytorch": ["fp32"], "onnxruntime": ["fp32", "int8"], "openvino": []},
        "calibration": {"methods": list(METHODS), "samples": [16 * (1 + n) for n in range(counts)]},
        "repairs": {f"r{number}": {"smoothquant": number / 10} for number in range(REPAIRS)},
    }


def write_project(config: dict[str, Any]) -> Plan:
    """Write a project of this configuration into this folder; return its plan."""
    for name in LINKED:
        Path(name).symlink_to(REPOSITORY / name)
    Path("many.yaml").write_text(yaml.safe_dump(config))
    Path("plan.py").write_text(PLAN)
    Path("summarize.py").write_text(SUMMARIZE)
    Path("render.py").write_text(RENDER)
    return make_plan(checked(config, SCHEMA))


def write_inputs(plan: Plan) -> None:
    """Write the records of all variants, and the arguments of their summary."""
    inputs = write_records(plan.jobs, plan.baselines)
    paths = {name: [*map(str, found)] for name, found in vars(inputs).items()}
    known = {"baselines": plan.baselines, "unavailable": plan.unavailable, "budget_points": 1.0}
    Path("inputs.json").write_text(json.dumps(paths))
    Path("settings.json").write_text(json.dumps(known))


def measured(arguments: list[str], options: argparse.Namespace) -> tuple[float, float, int]:
    """Return CPU and elapsed seconds of Python with these arguments, and its peak in bytes."""
    profile = options.profile
    profiled = ["-m", "cProfile", "-o", str(profile)] if profile else []
    began = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, *profiled, *arguments],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "scripts")},
    )
    peak, ended = 0, 0
    while not ended:
        peak = peak if options.elapsed else max(peak, family_bytes(child.pid))
        time.sleep(0.01 if options.elapsed else EVERY_S)
        ended, status, used = os.wait4(child.pid, os.WNOHANG)
    if status != 0:
        sys.exit(f"{' '.join(arguments)} has failed; its message is above")
    # the largest of them has a peak between two looks, too
    elapsed = time.monotonic() - began
    return used.ru_utime + used.ru_stime, elapsed, max(peak, used.ru_maxrss * 1024)


def family_bytes(pid: int) -> int:
    """Return the memory of a process and its children, each page that they share once."""
    try:
        process = psutil.Process(pid)
        return sum(map(proportional_bytes, [process, *process.children(recursive=True)]))
    except psutil.NoSuchProcess:
        return 0


if __name__ == "__main__":
    main()

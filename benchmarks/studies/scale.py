"""What planning and summarizing cost with many variants: CPU seconds and memory.

    .venv/bin/python benchmarks/studies/scale.py 300 1000 3000 --parts plan,parse,dry-run,summarize

Makes a project with a configuration of each number of variants, 200 a model, and prints a row of
a Markdown table for each part. CPU seconds are those of a process and its children, which other
load does not change much; seconds on the wall are not printed. Nothing is built or measured: the
records that are summarized are made up, and valid. `--profile FILE` keeps a profile of the planning
for `pstats`.
"""

import argparse
import cProfile
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY / "scripts"))
sys.path.insert(0, str(Path(__file__).parent))

from tightrope.plan.config import checked
from tightrope.plan.plan import make_plan

# parts of the project that a run needs
LINKED = ("Snakefile", "rules", "scripts", "profiles", "envs", "config")
# of the 200 variants of a model: two in float, the rest is these products
METHODS = ("minmax", "entropy", "percentile")
FLOAT, REPAIRS, A_MODEL = 2, 10, 200


def configuration(variants: int) -> dict[str, Any]:
    """Return a configuration with so many variants, at most A_MODEL a model."""
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


def main() -> None:
    """Print a table with a row for each part and number of variants."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variants", type=int, nargs="+")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--profile", type=Path, default=None)
    options = parser.parse_args()
    print("| variants | part | CPU s | peak MB |\n| ---: | --- | ---: | ---: |")
    for variants in options.variants:
        config = configuration(variants)
        jobs = len(make_plan(checked(config, REPOSITORY / "config/schema.yaml")).jobs)
        for part in options.parts.split(","):
            with tempfile.TemporaryDirectory() as folder:
                seconds, peak = in_child(PARTS[part], config, Path(folder), options.profile)
            print(f"| {jobs} | {part} | {seconds:.2f} | {peak / 1e6:.0f} |", flush=True)


def in_child(
    part: Callable[..., None], config: dict[str, Any], folder: Path, profile: Path | None
) -> tuple[float, int]:
    """Run a part in a process of its own; return its CPU seconds and peak resident bytes."""
    child = os.fork()
    if child == 0:
        try:
            os.chdir(folder)
            for name in LINKED:
                Path(name).symlink_to(REPOSITORY / name)
            Path("many.yaml").write_text(yaml.safe_dump(config))
            profiler = cProfile.Profile()
            before = cpu_seconds()
            if profile:
                profiler.runcall(part, config)
                profiler.dump_stats(profile)
            else:
                part(config)
            used = cpu_seconds() - before
            peaks = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
            peak = max(resource.getrusage(who).ru_maxrss for who in peaks)
            Path(folder, "used").write_text(f"{used} {peak * 1024}")
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("a part has failed; its message is above")
    used, peak = (folder / "used").read_text().split()
    return float(used), int(peak)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def plan(config: dict[str, Any]) -> None:
    """Check the configuration and plan its jobs."""
    make_plan(checked(config, "config/schema.yaml"))


def snakemake(*words: str) -> None:
    """Run Snakemake in this folder, quietly."""
    command = [sys.executable, "-m", "snakemake", "--configfile", "many.yaml", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def parse(config: dict[str, Any]) -> None:
    """Parse the Snakefile and do nothing, as each job does before its work."""
    snakemake("--list-rules")


def dry_run(config: dict[str, Any]) -> None:
    """Plan everything from an empty folder, printing each job."""
    snakemake("--dry-run", "--cores", "2")


def summarize(config: dict[str, Any]) -> None:
    """Summarize made-up records of all variants; their writing is not counted."""
    from scale_records import write_records, summarized

    raise NotImplementedError


PARTS: dict[str, Callable[..., None]] = {
    "plan": plan,
    "parse": parse,
    "dry-run": dry_run,
    "summarize": summarize,
}


if __name__ == "__main__":
    main()

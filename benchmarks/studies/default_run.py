"""What the default run costs: time and memory of the whole, and of the changes that users make.

Run it in a fresh clone with the environment of envs/cpu.txt, on a machine with nothing else to do:

    taskset -c 0,1 .venv/bin/python benchmarks/studies/default_run.py

It prints one Markdown table row for each measurement, and changes no file that is in git.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

SNAKEMAKE = [sys.executable, "-m", "snakemake", "--cores", "1"]
TARGET = "reports/summary.html"
STEPS = (
    ("everything", [*SNAKEMAKE, TARGET]),
    ("nothing to do", [*SNAKEMAKE, TARGET]),
    ("report text", [*SNAKEMAKE, TARGET]),
    (
        "calibration samples 512 to 256",
        [*SNAKEMAKE, TARGET, "--config", "calibration={samples: [256]}"],
    ),
)


def main() -> None:
    """Run the steps in order and print what each took."""
    print("| step | seconds | peak memory, GB | exit code |\n| --- | ---: | ---: | ---: |")
    for name, command in STEPS:
        page = Path("scripts/tightrope/report/template/page.html")
        text = page.read_text()
        if name == "report text":
            page.write_text(text + "<!-- changed -->\n")
        try:
            seconds, peak_bytes, code = watched(command)
        finally:
            page.write_text(text)
        print(f"| {name} | {seconds:.1f} | {peak_bytes / 1e9:.2f} | {code} |", flush=True)


def watched(command: list[str]) -> tuple[float, int, int]:
    """Seconds, highest memory (proportional set size of the process tree) and exit code."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    began = time.perf_counter()
    with Path("artifacts/benchmark.log").open("a") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        peak = [0]
        watcher = threading.Thread(target=watch, args=(process.pid, peak), daemon=True)
        watcher.start()
        code = process.wait()
    return time.perf_counter() - began, peak[0], code


def watch(pid: int, peak: list[int]) -> None:
    """Keep the highest memory of the tree below `pid` in `peak[0]`, looked at each second."""
    while psutil.pid_exists(pid):
        peak[0] = max(peak[0], tree_bytes(pid))
        time.sleep(1)


def tree_bytes(pid: int) -> int:
    """Memory of the process and its descendants, shared pages counted once."""
    total = 0
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in family:
        try:
            total += process.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return total


if __name__ == "__main__":
    main()

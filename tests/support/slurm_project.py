"""The tiny project on the cluster of slurm_cluster.py: its profile, and orders to its jobs."""

import re
from pathlib import Path
from typing import Any

from tiny_project import CONFIG, MODEL, Project, adapted, new_project

PROFILE = "profiles/tests"
SECONDS = 900  # that a run may take on a machine with other work
# for the values that are marked HERE: the node n1
VALUES: dict[str, Any] = {
    "account": "tests",
    "partition": "main",
    "host": "small-node",
    "constraint": "small",
    "cores": 2,
    "node_mb": 3000,
    "longest_minutes": 60,
    "status": "squeue",
}
# One level of jobs takes until the first look that finds one ended, and each look that finds none
# puts off the next by 10 s: the first comes after about the time of a job.
SHORT = {
    "max-status-checks-per-second": 2,
    "seconds-between-status-checks": 3,
    "slurm-init-seconds-before-status-checks": 9,
}
JOB = "job = current_job(globals())"
BUILD = "run_build(current_job(globals()))"
ORDER = """
import pathlib
order = pathlib.Path("orders", job.rule)
exec(order.read_text() if order.is_file() else "")
"""
# the scripts whose jobs take orders, and what is edited there
OBEDIENT = {
    "scripts/build_engine.py": (BUILD, f"{JOB}\n{ORDER}run_build(job)"),
    "scripts/measure_latency.py": (f"{JOB}\n", f"{JOB}\n{ORDER}"),
}
MODEL_CONFIG = CONFIG["models"][MODEL]
SETTINGS: dict[str, Any] = {
    "engines": {"onnxruntime": ["fp32"]},
    "graphs": [],  # no job that draws one
    "models": {MODEL: {**MODEL_CONFIG, "train": {**MODEL_CONFIG["train"], "epochs": 1}}},
}


def obedient_project(repository: Path, folder: Path) -> Project:
    """A tiny project whose builds and latency measurements take orders."""
    project = new_project(repository, folder)
    for path, (old, new) in OBEDIENT.items():
        project.edit(path, old, new)
    project.configure(**SETTINGS)
    write_profile(project)
    return project


def write_profile(project: Project, *, retries: int = 2, **values: Any) -> None:
    """Write a copy of profiles/slurm with other values where it says HERE, and short waits."""
    text = adapted((project / "profiles/slurm/config.yaml").read_text(), {**VALUES, **values})
    for key, value in {**SHORT, "retries": retries}.items():
        text, count = re.subn(rf"^({key}: )\S+", rf"\g<1>{value}", text, flags=re.M)
        assert count == 1, f"{count} times {key}"
    (project / PROFILE).mkdir(exist_ok=True)
    (project / PROFILE / "config.yaml").write_text(text)


def give_order(project: Project, rule: str, program: str) -> None:
    """Let the next jobs of the rule run a program of Python before they begin."""
    (project / "orders").mkdir(exist_ok=True)
    (project / "orders" / rule).write_text(program)

"""Kills of the tiny run on a real Slurm at random moments, each followed by the plain command.

    .venv/bin/python benchmarks/studies/kills_on_slurm.py 5 --start empty
    .venv/bin/python benchmarks/studies/kills_on_slurm.py 15 --start warm --seed 100

As kills.py, through a copy of profiles/slurm with short waits, on the cluster of the tests (it
needs root and Debian's munge and Slurm). Jobs of Slurm outlive the Snakemake that submitted them:
while one does, the plain command must be refused with a line that names just those jobs, submit
nothing, and complete once they have ended. Of even seeds they are cancelled with the `scancel` of
that line, of odd ones they are left to end.
"""

import os
import re
import shutil
import tempfile
from functools import partial
from pathlib import Path

from kills import COLD, REPOSITORY, command_line, study
from reproduced import ENGINES
from slurm_cluster import Cluster, missing, start_cluster, wait_for
from slurm_project import PROFILE, SECONDS, SETTINGS, write_profile
from tiny_project import Project, new_project

OPTIONS = ("--profile", PROFILE)


def main() -> None:
    """Start a Slurm, and kill as many runs on it as the command line says."""
    words = command_line(__doc__ or "")
    if reason := missing():
        raise SystemExit(reason)
    folder = Path(tempfile.mkdtemp(prefix="kills."))
    try:
        # beside the folder: its keeper deletes it when this process has ended
        cluster = Cluster(folder.with_suffix(f"{folder.suffix}-slurm"))
        start_cluster(cluster.folder)
        os.environ["PATH"] = cluster.path
        fresh = new_project(REPOSITORY, folder / "fresh")
        fresh.configure(**{**SETTINGS, "engines": ENGINES})
        write_profile(fresh)
        study(fresh, words, *OPTIONS, settle=partial(settled, cluster))
    finally:
        shutil.rmtree(folder)


def settled(cluster: Cluster, project: Project, seed: int) -> str:
    """Run the plain command beside what the killed run left, and end that; return what came of it.

    Raises AssertionError where jobs were at work beside another run, or the refusal is another one.
    """
    before = {job.number for job in cluster.jobs()}
    orphans = {job.number for job in cluster.at_work()}
    done = project.snakemake(*OPTIONS, **COLD)
    lines = [line for line in done.stdout.splitlines() if "scancel" in line]
    if not lines:
        project.jobs(done)
        late = overtaken(cluster, before)
        assert not late, f"FAULT: a run began beside the jobs {late}, not refused"
        return f"{len(orphans)}, ended before it began" if orphans else "nothing"
    now, jobs = {job.number for job in cluster.at_work()}, {job.number for job in cluster.jobs()}
    named = re.findall(r"\d+", lines[0].rpartition("scancel")[2])
    assert done.returncode, "FAULT: refused with exit code 0"
    assert len(lines) == 1 and "Traceback" not in done.stdout, f"FAULT: {done.stdout}"
    assert now <= set(named), f"FAULT: {named} named, {now} at work"
    assert jobs - before <= set(named), f"FAULT: {jobs - before} submitted beside {named}"
    if seed % 2 == 0:
        cluster.ask("scancel", *named)
    assert wait_for(lambda: not cluster.at_work(), SECONDS), cluster.jobs()
    return f"{len(named)}, refused, {'cancelled' if seed % 2 == 0 else 'waited for'}"


def overtaken(cluster: Cluster, before: set[str]) -> list[str]:
    """Return which of these jobs had not ended when the first of the others was submitted."""
    lines = cluster.ask("squeue", "-h", "--states=all", "-o", "%A|%V|%e").splitlines()
    times = {number: (begun, end) for number, begun, end in (line.split("|") for line in lines)}
    first = min((times[number][0] for number in times.keys() - before), default="~")
    return [number for number in times.keys() & before if times[number][1] > first]


if __name__ == "__main__":
    main()

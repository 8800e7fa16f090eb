"""Nodes that share no file system: a folder for each job, with the sources and nothing else."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tiny_project import Project

# plugins of Snakemake and a server of S3, apart from the other packages
PACKAGES = Path(sys.prefix) / "storage"
# of the server, which takes any
SECRET = "not-to-be-seen"
SUBMIT = """
import pathlib, shutil, subprocess, sys, tempfile
node = pathlib.Path(tempfile.mkdtemp(dir={nodes!r}))
for name in ("Snakefile", "rules", "scripts", "config", "envs"):
    if pathlib.Path(name).is_dir():
        shutil.copytree(name, node / name)
    else:
        shutil.copy(name, node)
shutil.copy(sys.argv[-1], node / "job.sh")
run = "bash job.sh > output.txt 2>&1; echo $? > status.part; mv status.part status"
subprocess.Popen(["bash", "-c", run], cwd=node, start_new_session=True,
                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(node)
"""
STATUS = """
import pathlib, sys
status = pathlib.Path(sys.argv[-1], "status")
ended = status.is_file()
print("running" if not ended else "success" if status.read_text().strip() == "0" else "failed")
"""


def words_for(folder: Path, provider: str, prefix: str) -> list[str]:
    """Options of Snakemake: jobs on nodes of their own in `folder`, all files in that storage."""
    (folder / "nodes").mkdir(parents=True)
    for name, program in (("submit", SUBMIT), ("status", STATUS)):
        (folder / f"{name}.py").write_text(program.format(nodes=str(folder / "nodes")))
    submit, status = (
        shlex.join([sys.executable, str(folder / f"{name}.py")]) for name in ("submit", "status")
    )
    return [
        *("--executor", "cluster-generic", "--jobs", "2", "--shared-fs-usage", "none"),
        *("--cluster-generic-submit-cmd", submit, "--cluster-generic-status-cmd", status),
        *("--default-storage-provider", provider, "--default-storage-prefix", prefix),
        *("--seconds-between-status-checks", "1"),
    ]


def apart(project: Project, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Snakemake's answer, with the plugins for storage."""
    return project.snakemake(*words, PYTHONPATH=str(PACKAGES), **variables)


@contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """A server of S3 that forgets all in the end; yields the environment of its clients."""
    with (folder / "s3.log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "--port", "0", "--host", "127.0.0.1"],
            env={**os.environ, "PYTHONPATH": str(PACKAGES), "PYTHONUNBUFFERED": "1"},
            stdout=log,
            stderr=log,
        )
    try:
        yield {
            "SNAKEMAKE_STORAGE_S3_ENDPOINT_URL": address_in(folder / "s3.log"),
            "SNAKEMAKE_STORAGE_S3_ACCESS_KEY": "tests",
            "SNAKEMAKE_STORAGE_S3_SECRET_KEY": SECRET,
        }
    finally:
        server.kill()
        server.wait()


def address_in(log: Path, seconds: float = 60) -> str:
    """The address that the server has written into its log."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := re.search(r"http://[0-9.:]+", log.read_text()):
            return found.group()
        time.sleep(0.1)
    raise TimeoutError(log.read_text())

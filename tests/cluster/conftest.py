"""A real Slurm of two nodes of two types on this host, and the tiny project run on it once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slurm_cluster import Cluster, missing, start_cluster
from slurm_project import PROFILE, SECONDS, obedient_project
from tiny_project import Project


@pytest.fixture(scope="module")
def cluster(made_once: Callable[..., Path]) -> Iterator[Cluster]:
    """A running Slurm, one for all tests, whose programs are first in PATH."""
    if reason := missing():
        pytest.exit(reason, returncode=1)
    found = Cluster(made_once("slurm", start_cluster))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", found.path)
        yield found


@pytest.fixture(scope="module")
def finished(repository: Path, cluster: Cluster, made_once: Callable[..., Path]) -> Project:
    """The tiny project after one whole run on Slurm; to be copied or read, not to be changed."""

    def run(folder: Path) -> None:
        running = obedient_project(repository, folder).start("--profile", PROFILE)
        output, _ = running.communicate(timeout=SECONDS)
        assert running.returncode == 0, output

    return Project(made_once("finished-on-slurm", run))


@pytest.fixture
def project(finished: Project, cluster: Cluster, tmp_path: Path) -> Iterator[Project]:
    """That project in a copy that the test may change; no job of another test is left."""
    cluster.clear()
    yield finished.copy(tmp_path / "project")
    cluster.clear()

"""The tiny project, run once for all tests, and copies of it to change, break and run again."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_project import Project, write_texts


@pytest.fixture(scope="session")
def fresh(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A tiny project in which nothing was run; to be copied."""
    folder = tmp_path_factory.mktemp("tightrope") / "fresh"
    folder.mkdir()
    shutil.copy2(repository / "Snakefile", folder)
    for name in ("rules", "scripts", "tools", "config", "profiles", "envs"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(repository / name, folder / name, ignore=ignored)
    project = Project(folder)
    project.configure()
    write_texts(project / "texts.csv", seed=0)
    return project


@pytest.fixture(scope="session")
def finished(fresh: Project) -> Project:
    """The tiny project after one whole run; to be copied or read, not to be changed.

    The first process of the tests that needs it runs it, the others wait for that.
    """
    folder = Path(os.environ["TESTS_SHARED_FOLDER"])
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "finished").is_dir():
            project = fresh.copy(folder / "unfinished")
            project.run()
            project.folder.rename(folder / "finished")
    return Project(folder / "finished")


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Project], Project]:
    """Makes a copy that the test may change."""
    return lambda project: project.copy(tmp_path / "project")


@pytest.fixture
def project(finished: Project, copied: Callable[[Project], Project]) -> Project:
    """The tiny project after one whole run, in a copy that the test may change."""
    return copied(finished)


@pytest.fixture
def unrun(fresh: Project, copied: Callable[[Project], Project]) -> Project:
    """The tiny project before any run, in a copy that the test may change."""
    return copied(fresh)

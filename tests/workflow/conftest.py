"""The tiny project, run once for all tests, and copies of it to change, break and run again."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_project import MODEL, ONNX_MODELS, QUANTIZED, WHOLE, Project, new_project, write_own_onnx


@pytest.fixture(scope="session")
def fresh(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A tiny project in which nothing was run; to be copied."""
    project = new_project(repository, tmp_path_factory.mktemp("tightrope") / "fresh")
    # bytecode and syntax digests, for which the first run in every copy would take a second
    project.plan()
    shutil.rmtree(project / ".snakemake")
    return project


@pytest.fixture(scope="session")
def finished(fresh: Project, made_once: Callable[..., Path]) -> Project:
    """The tiny project after one whole run; to be copied or read, not to be changed."""
    return Project(made_once("finished", lambda folder: fresh.copy(folder).run(cold=True)))


@pytest.fixture(scope="session")
def whole(finished: Project, repository: Path, made_once: Callable[..., Path]) -> Project:
    """A run with everything that can be asked for; to be copied or read, not to be changed.

    In the folder `reached` beside it its jobs have written which functions they ran, for which
    test_reach.py asks.
    """

    def run(folder: Path) -> None:
        reached = folder.with_name("reached")
        shutil.rmtree(reached, ignore_errors=True)
        reached.mkdir()
        project = finished.copy(folder)
        project.configure(**WHOLE)
        made = project / f"artifacts/{MODEL}"
        (project / QUANTIZED).parent.mkdir()
        shutil.copy2(made / "quantized/u8s8-minmax-8.onnx", project / QUANTIZED)
        shutil.copy2(made / "checkpoint/tokenizer.json", (project / QUANTIZED).parent)
        profiled = repository / "tests/support/profiled"
        project.run(PYTHONPATH=str(profiled), REACHED=str(reached))

    return Project(made_once("whole", run), WHOLE["models"])


@pytest.fixture(scope="session")
def finished_onnx(fresh: Project, finished: Project, made_once: Callable[..., Path]) -> Project:
    """The same whose model is an ONNX file: its jobs are faster, see ONNX_MODELS."""

    def run(folder: Path) -> None:
        project = Project(fresh.copy(folder).folder, ONNX_MODELS)
        write_own_onnx(project, finished)
        project.configure()
        project.run()

    return Project(made_once("finished-onnx", run), ONNX_MODELS)


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


@pytest.fixture
def onnx_project(finished_onnx: Project, copied: Callable[[Project], Project]) -> Project:
    """The tiny project of an ONNX file after one whole run, in a copy that the test may change."""
    return copied(finished_onnx)

import atexit
import fcntl
import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nvml_driver import build_driver
from tightrope.jobs import progress
from tightrope.machine.nvml import nvidia_gpu
from tightrope.terminal.jobs import BAR
from tightrope.variants import Variant
from tiny_images import BUCKETS, make_tiny_images
from tiny_model import OPTIONS, TinyModel, build_variant, make_tiny_model, model_files

Build = Callable[[Variant], Path]
SHARED_FOLDER = "TESTS_SHARED_FOLDER"
# It makes the project that all workflow tests copy, while the other process tests engines.
FIRST = "workflow/test_terminal.py"


def pytest_configure() -> None:
    """Make two folders of this run, which all its processes inherit.

    One is for what Inductor compiles, whose default is one folder for all that the user runs, and
    code from there may be another machine's. The other is for what the processes share. Inductor
    need not compile a program per instruction set to see whether the compiler knows it (5 s).
    Threads of OpenMP that wait for each other sleep: where two processes of tests share two
    processors, a training of two threads else takes 25 times its CPU seconds.
    """
    os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "1"
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if "PYTEST_XDIST_WORKER" not in os.environ:
        for name in ("TORCHINDUCTOR_CACHE_DIR", SHARED_FOLDER):
            folder = tempfile.mkdtemp(prefix="tests-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            os.environ[name] = folder


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def made_once() -> Callable[[str, Callable[[Path], object]], Path]:
    """Makes a folder of that name by a function, once for all processes of the tests.

    The first process that asks for it makes it, the others wait for that.
    """
    shared = Path(os.environ[SHARED_FOLDER])

    def folder_of(name: str, make: Callable[[Path], object]) -> Path:
        with (shared / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (shared / f"{name}.made").exists():
                shutil.rmtree(shared / name, ignore_errors=True)
                make(shared / name)
                (shared / f"{name}.made").touch()
        return shared / name

    return folder_of


@pytest.fixture(scope="session")
def tiny(made_once: Callable[..., Path]) -> TinyModel:
    return model_files(made_once("tiny", make_tiny_model))


@pytest.fixture(scope="session")
def tiny_images(made_once: Callable[..., Path]) -> TinyModel:
    return model_files(made_once("tiny-images", make_tiny_images))


def builder(model: TinyModel, made_once: Callable[..., Path], prefix: str, **buckets: Any) -> Build:
    """From a variant of the model to its engine.json, each built once, in `buckets` if it pads."""

    def build(variant: Variant) -> Path:
        options = OPTIONS.get(variant.engine, {})
        options = options | (buckets if "buckets" in options else {})

        def make(folder: Path) -> None:
            build_variant(model, variant, folder / "engine.json", options=options)

        return made_once(f"{prefix}{variant}", make) / "engine.json"

    return build


@pytest.fixture(scope="session")
def built(tiny: TinyModel, made_once: Callable[..., Path]) -> Build:
    return builder(tiny, made_once, "")


@pytest.fixture(scope="session")
def built_images(tiny_images: TinyModel, made_once: Callable[..., Path]) -> Build:
    return builder(tiny_images, made_once, "images-", buckets=BUCKETS)


@pytest.fixture(scope="module")
def short_rounds() -> Iterator[None]:
    """Six rounds of a hundredth of a second: nothing here is about the numbers."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ROUNDS": 6, "BLOCK_S": 0.01, "WARM_UP_S": 0.05}.items():
            patch.setattr(f"tightrope.measure.rounds.{name}", value)
        yield


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of driver libraries of the tests, see nvml_driver."""
    folder = tmp_path_factory.mktemp("driver")
    build_driver(folder)
    return folder


@pytest.fixture
def told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[], dict[str, list[int]]]:
    """The percentages of each step that a job has written for the terminal, in their order."""
    monkeypatch.setattr(progress, "INTERVAL_SECONDS", 0.0)

    def steps() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for bar in BAR.finditer(capfd.readouterr().err):
            found.setdefault(bar["what"].strip(), []).append(int(bar["percent"]))
        return found

    return steps


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put all tests in their order, and skip those marked `gpu` where there is none."""
    items.sort(key=order)
    if nvidia_gpu()[0] is None:
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))


def pytest_collection_finish() -> None:
    """Let no search for garbage go through what all tests and their forks share.

    Those are the tests themselves and the modules that they have imported. A search in a fork
    would also copy the pages in which they are.
    """
    gc.collect()
    gc.freeze()


def order(item: pytest.Item) -> int:
    """The place of a test: small files come last, so that no process waits at the end.

    Engine tests come early: they fork, which a process with OpenMP threads must not do.
    """
    if item.path.as_posix().endswith(FIRST):
        return 0
    places = ({"engines", "gpu"}, {"workflow"}, {"browser"})
    return next((n for n, one in enumerate(places, 1) if one & set(item.path.parts)), 4)

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tightrope.machine.host import nvidia_gpu
from tightrope.variants import Variant
from tiny_images import make_tiny_images
from tiny_model import TinyModel, build_variant, make_tiny_model


def pytest_configure() -> None:
    """Keep what Inductor compiles in a folder of this run, which its worker processes inherit.

    Its default is one folder for all that the user runs, and code from there may be another
    machine's.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        folder = tempfile.mkdtemp(prefix="inductor-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny_images(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return make_tiny_images(tmp_path_factory.mktemp("tiny-images"))


@pytest.fixture(scope="session")
def built(tiny: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Variant], Path]:
    """From a variant of the tiny model to its engine.json, each built once."""
    folder = tmp_path_factory.mktemp("engines")
    made: dict[Variant, Path] = {}

    def build(variant: Variant) -> Path:
        if variant not in made:
            made[variant] = build_variant(tiny, variant, folder / str(variant) / "engine.json")
        return made[variant]

    return build


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Engine tests come first: they fork, which a process with OpenMP threads must not do.

    Those marked `gpu` are skipped where there is none.
    """
    items.sort(key=lambda item: not {"engines", "gpu"} & set(item.path.parts))
    if nvidia_gpu()[0] is None:
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU"))

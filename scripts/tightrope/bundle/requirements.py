"""Requirements of a bundle: what its programs import, pinned with all that it needs."""

from collections.abc import Mapping

from packaging.requirements import Requirement

from tightrope.errors import TightropeError
from tightrope.machine.distributions import closure
from tightrope.signature import IMAGE

# what the program of each engine imports beside numpy, in scripts/tightrope/bundle/programs/engines
IMPORTED = {
    "onnxruntime": ("onnxruntime",),
    "openvino": ("openvino",),
    "pytorch": ("torch", "transformers"),
    "inductor": ("torch",),
    "torchscript": ("torch",),
    "tvm": ("apache-tvm", "safetensors"),
}


def imported(engine: str, task: str) -> tuple[str, ...]:
    """Return the distributions that the programs of a bundle import."""
    return (*IMPORTED[engine], "numpy", "pillow" if task == IMAGE else "tokenizers")


def pinned(engine: str, task: str, built_with: Mapping[str, str | None]) -> dict[str, str]:
    """Return the version of each distribution that a bundle needs, as installed here.

    Raises TightropeError where the engine was built with another version.
    """
    packages = closure(map(Requirement, imported(engine, task)))
    for name, version in built_with.items():
        here = packages.get(name)
        if here is not None and version is not None and version.partition("+")[0] != here:
            raise TightropeError(
                f"the engine was built with {name} {version}, {here} is installed; run again"
            )
    return packages

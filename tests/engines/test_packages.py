"""TorchScript and AOTInductor give packages: what they do not need where they are loaded."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays, stack
from tightrope.jobs.child import supervised
from tightrope.variants import Variant
from tiny_model import LIMITS, TinyModel, evaluation_rows, name_variant

# a module that is None cannot be imported
PROGRAM = """
import sys
sys.modules["transformers"] = sys.modules["torchao"] = None
import numpy as np
from tightrope.engines.load import load_engine

path, inputs, outputs = sys.argv[1:]
run, _ = load_engine(path, threads=1)
np.save(outputs, run(dict(np.load(inputs))))
"""


def answer(path: Path, batch: Arrays) -> np.ndarray:
    """Run in a child: logits of the batch."""
    return load_engine(path, threads=1)[0](batch)


@pytest.mark.parametrize(
    ("engine", "precision"),
    [("torchscript", "fp32"), ("torchscript", "bf16"), ("inductor", "fp32"), ("inductor", "int8")],
)
def test_a_package_runs_without_transformers_torchao_and_a_compiler(
    repository: Path,
    tiny: TinyModel,
    built: Callable[[Variant], Path],
    tmp_path: Path,
    engine: str,
    precision: str,
) -> None:
    path, batch = built(name_variant(engine, precision)), stack(evaluation_rows(tiny)[:5])
    np.savez(tmp_path / "inputs.npz", **batch)
    environment = {
        **os.environ,
        "PYTHONPATH": str(repository / "scripts"),
        "PATH": str(tmp_path),
        "CXX": "/there/is/none",
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
    }
    files = [str(path), str(tmp_path / "inputs.npz"), str(tmp_path / "outputs.npy")]
    subprocess.run([sys.executable, "-c", PROGRAM, *files], env=environment, check=True)
    expected = supervised(answer, path, batch, limits=LIMITS)
    np.testing.assert_array_equal(np.load(tmp_path / "outputs.npy"), expected)

import pytest
from quantized_files import evaluation_batches
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import load_encoder, read_split
from tiny_model import LONGEST, TinyModel


@pytest.fixture(scope="session")
def batches(tiny: TinyModel) -> list[Arrays]:
    """What the tiny model is evaluated with."""
    return evaluation_batches(tiny)


@pytest.fixture(scope="session")
def pool(tiny: TinyModel) -> list[Arrays]:
    """The 40 encoded texts of the calibration split."""
    encode = load_encoder(tiny.checkpoint, max_sequence=LONGEST)
    return list(encode(read_split(tiny.split("calibration"))))

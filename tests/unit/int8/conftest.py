import pytest
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tiny_model import LONGEST, TinyModel, evaluation_rows


@pytest.fixture(scope="session")
def batches(tiny: TinyModel) -> list[Arrays]:
    """The 80 texts of the evaluation split in batches of 16."""
    rows = evaluation_rows(tiny)
    return [stack(rows[start : start + 16]) for start in range(0, 80, 16)]


@pytest.fixture(scope="session")
def pool(tiny: TinyModel) -> list[Arrays]:
    """The 40 encoded texts of the calibration split."""
    encode = load_encoder(tiny.checkpoint, max_sequence=LONGEST)
    return list(encode(read_split(tiny.split("calibration"))))

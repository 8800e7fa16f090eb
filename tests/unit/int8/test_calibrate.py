import hashlib
import json
from pathlib import Path

import pytest
from splits import split_of
from tightrope.artifacts.files import sha256
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import read_split
from tightrope.int8.calibrate import (
    calibrate,
    calibration_batches,
    calibration_examples,
    read_cache,
    write_cache,
)
from tiny_model import LONGEST, SAMPLES, TinyModel


def make_cache(model: TinyModel, target: Path, samples: int, method: str = "minmax") -> dict:
    inputs = (model.simplified, model.split("calibration"), model.checkpoint, target)
    settings = {"max_sequence": LONGEST, "percentile": None, "threads": 1, "libraries": {}}
    calibrate(*inputs, method=method, samples=samples, **settings)
    return read_cache(target, model=model.simplified)


def test_a_repeat_gives_the_same_bytes(tiny: TinyModel, tmp_path: Path) -> None:
    make_cache(tiny, tmp_path / "again.json", SAMPLES)
    assert (tmp_path / "again.json").read_bytes() == tiny.minmax.read_bytes()


def test_it_says_of_what_it_was_made(tiny: TinyModel) -> None:
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    assert (cache["method"], cache["samples"], cache["schema"]) == ("minmax", SAMPLES, 2)
    assert cache["options"]["max_sequence"] == LONGEST
    assert cache["model_sha256"] == sha256(tiny.simplified)
    samples = json.dumps(read_split(split_of(tiny.data, "calibration"))[:SAMPLES], sort_keys=True)
    assert cache["samples_sha256"] == hashlib.sha256(samples.encode()).hexdigest()
    assert str(tiny.data.parent.parent) not in tiny.minmax.read_text()
    expected = {"texts": SAMPLES, "truncated": 0, "max_sequence": LONGEST}
    assert cache["truncation"] == expected


def test_more_samples_than_there_are_is_an_error(tiny: TinyModel, tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match="40 calibration examples, 41 are asked for"):
        make_cache(tiny, tmp_path / "a.json", 41)
    assert not (tmp_path / "a.json").exists()


def test_samples_of_a_cache_are_its_own(tiny, pool: list[Arrays], tmp_path) -> None:
    """A cache for NNCF is a list of samples without ranges."""
    files = tiny.samples(tiny.nncf)
    found = sorted(batch["input_ids"].tolist()[0] for batch in calibration_batches(**files))
    assert found == sorted(row["input_ids"].tolist() for row in pool[:SAMPLES])
    document = read_cache(tiny.nncf, model=tiny.simplified)
    assert (document["method"], document["samples"], document["ranges"]) == ("nncf", SAMPLES, {})
    write_cache(tmp_path / "a.json", **{**document, "samples_sha256": "0" * 12})
    with pytest.raises(ArtifactError, match=r"a\.json: the cache of other samples than"):
        calibration_batches(**{**files, "calibration": str(tmp_path / "a.json")})


def test_random_inputs_are_nested_and_not_of_the_pool(tiny: TinyModel, tmp_path: Path) -> None:
    assert calibration_examples(tiny.split("calibration"), 500, random=True)[
        :3
    ] == calibration_examples("no/such/data.json", 3, random=True)
    few = make_cache(tiny, tmp_path / "few.json", 4, "random")["ranges"]
    many = make_cache(tiny, tmp_path / "many.json", 8, "random")["ranges"]
    assert all(many[name][1] >= high - 1e-4 for name, (_, high) in few.items())
    assert few != read_cache(tiny.minmax, model=tiny.simplified)["ranges"]

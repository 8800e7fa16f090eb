import hashlib
import json
from pathlib import Path

import pytest
from splits import split_of
from tightrope.artifacts.files import sha256
from tightrope.errors import ArtifactError, TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.calibrate import (
    calibrate,
    calibration_batches,
    calibration_examples,
    read_cache,
    write_cache,
)
from tightrope.onnx.file import load_onnx, save_onnx
from tiny_model import LONGEST, SAMPLES, TinyModel

PERCENTILE = 99.0


def make_cache(model: TinyModel, target: Path, samples: int, method: str = "minmax") -> dict:
    calibrate(
        model.simplified,
        model.split("calibration"),
        model.checkpoint,
        target,
        method=method,
        samples=samples,
        max_sequence=LONGEST,
        percentile=PERCENTILE if method == "percentile" else None,
        threads=1,
        libraries={},
    )
    return read_cache(target, model=model.simplified)


def rows_of(model: TinyModel, samples: int) -> list[Arrays]:
    examples = calibration_examples(model.split("calibration"), samples)
    return load_encoder(model.checkpoint, max_sequence=LONGEST)(examples)


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


def test_the_nncf_cache_is_a_list_of_samples_without_ranges(tiny: TinyModel) -> None:
    cache = read_cache(tiny.nncf, model=tiny.simplified)
    assert (cache["method"], cache["samples"], cache["ranges"]) == ("nncf", SAMPLES, {})


def test_more_samples_than_there_are_is_an_error(tiny: TinyModel, tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match="40 calibration examples, 41 are asked for"):
        make_cache(tiny, tmp_path / "a.json", 41)
    assert not (tmp_path / "a.json").exists()


def test_the_cache_of_another_model_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    other = load_onnx(tiny.simplified)
    other.graph.name = "other"
    save_onnx(other, tmp_path / "other.onnx")
    with pytest.raises(ArtifactError, match=r"minmax-24\.json: the cache of another model than"):
        read_cache(tiny.minmax, model=tmp_path / "other.onnx")


def test_an_edited_cache_and_other_json_are_refused(tiny: TinyModel, tmp_path: Path) -> None:
    text = tiny.minmax.read_text()
    bound = next(iter(json.loads(text)["ranges"].values()))[1]
    edited, missing = "its content is not what was written", "without a digest of its content"
    for content, said in (
        (text.replace(str(bound), str(bound * 1.0000001)), edited),
        (json.dumps({**json.loads(text), "samples": 12}), missing),
        ("[]", missing),
    ):
        (tmp_path / "a.json").write_text(content)
        with pytest.raises(ArtifactError, match=rf"a\.json: {said}"):
            read_cache(tmp_path / "a.json", model=tiny.simplified)


def test_the_samples_of_a_cache_come_without_padding_in_its_order_of_length(
    tiny: TinyModel,
) -> None:
    paths = {"onnx": tiny.simplified, "calibration": tiny.nncf}
    paths |= {"data": tiny.split("calibration"), "checkpoint": tiny.checkpoint}
    batches = calibration_batches(**{name: str(path) for name, path in paths.items()})
    found = sorted(batch["input_ids"].tolist()[0] for batch in batches)
    assert found == sorted(row["input_ids"].tolist() for row in rows_of(tiny, SAMPLES))


def test_the_cache_of_other_samples_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    document = read_cache(tiny.nncf, model=tiny.simplified)
    write_cache(tmp_path / "a.json", **{**document, "samples_sha256": "0" * 12})
    with pytest.raises(ArtifactError, match=r"a\.json: the cache of other samples than"):
        calibration_batches(
            onnx=str(tiny.simplified),
            calibration=str(tmp_path / "a.json"),
            data=str(tiny.split("calibration")),
            checkpoint=str(tiny.checkpoint),
        )


def test_random_inputs_take_nothing_from_the_pool_and_are_nested(
    tiny: TinyModel, tmp_path: Path
) -> None:
    assert calibration_examples(tiny.split("calibration"), 500, random=True)[
        :3
    ] == calibration_examples("no/such/data.json", 3, random=True)
    few = make_cache(tiny, tmp_path / "few.json", 4, "random")["ranges"]
    many = make_cache(tiny, tmp_path / "many.json", 8, "random")["ranges"]
    assert all(many[name][1] >= high - 1e-4 for name, (_, high) in few.items())
    assert few != read_cache(tiny.minmax, model=tiny.simplified)["ranges"]

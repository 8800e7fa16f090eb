"""What a request takes around its call: texts and images prepared from raw examples, answers."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from artifact_files import rewrite
from splits import prepare_splits, split_of
from tightrope.artifacts.failures import write_failure
from tightrope.errors import ArtifactError, WorkFailed
from tightrope.inputs.arrays import PIXELS
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import supervised
from tightrope.measure import profile_inputs
from tightrope.measure.run import Shape
from tiny_images import SIDE
from tiny_model import LIMITS, LONGEST, TinyModel

SHAPES: list[Shape] = [{"batch": 1, "sequence": 8}, {"batch": 16, "sequence": LONGEST}]


@pytest.mark.parametrize("tokens", [8, LONGEST])
def test_texts_fill_their_shape_and_are_no_longer_than_needed(tiny: TinyModel, tokens: int) -> None:
    examples = read_split(tiny.split("timing"))
    given, prepare = profile_inputs.of_texts(
        tiny.checkpoint, examples, {"batch": 3, "sequence": tokens}
    )
    inputs = prepare(given)
    assert inputs["input_ids"].shape == (3, tokens)
    assert inputs["attention_mask"].all()
    assert len({one["text"] for one in given}) == 3
    whole = load_encoder(tiny.checkpoint, max_sequence=LONGEST)
    for one in given:
        assert len(whole([{"text": one["text"][:-1]}])[0]["input_ids"]) < tokens
    # padded texts have their tokens, and the rest is padding
    shape = {"batch": 2, "sequence": LONGEST, "tokens": 7}
    given, prepare = profile_inputs.of_texts(tiny.checkpoint, examples, shape)
    inputs = prepare(given)
    assert inputs["input_ids"].shape == (2, LONGEST)
    assert inputs["attention_mask"].sum(axis=1).tolist() == [7, 7]
    # one that is too short is taken whole
    short = "three words only"
    assert profile_inputs.filling(short, 5, lambda text: min(5, len(text.split()))) == short


def test_images_are_decoded_from_their_files(tiny_images: TinyModel) -> None:
    examples = read_split(tiny_images.split("timing"))[:2]
    shape = {"batch": 3, "height": SIDE, "width": SIDE}
    given, prepare = profile_inputs.of_images(tiny_images.checkpoint, examples, shape)
    assert isinstance(given[0]["image"], bytes)
    pixels = prepare(given)[PIXELS]
    assert (pixels.shape, pixels.dtype) == ((3, 3, SIDE, SIDE), np.float32)
    # two examples only, so the first comes again
    np.testing.assert_array_equal(pixels[0], pixels[2])
    work = partial(
        profile_inputs.around_calls, tiny_images.checkpoint, tiny_images.split("timing"), [shape], 1
    )
    assert supervised(work, limits=LIMITS)[0].prepare_s > 0


def test_random_inputs_are_never_prepared(tmp_path: Path, tiny: TinyModel) -> None:
    sizes = {"train": None, "evaluation": 8}
    data = tmp_path / "data.json"
    prepare_splits(data, source="random", columns={}, splits=sizes, pool=5, seed=0)
    work = partial(
        profile_inputs.around_calls, tiny.checkpoint, split_of(data, "timing"), SHAPES[:1], 1
    )
    (found,) = supervised(work, limits=LIMITS)
    assert found.prepare_s is None
    assert found.finish_s > 0


def test_each_shape_has_its_batch_and_what_goes_around_it_of_this_model(tiny, tmp_path) -> None:
    target = tmp_path / "a.json"
    files = tiny.checkpoint, tiny.split("timing"), tiny.simplified
    settings: dict[str, Any] = {"max_sequence": LONGEST, "threads": 1}
    work = partial(profile_inputs.measure_requests, *files, target, **settings)
    supervised(partial(work, shapes=SHAPES), limits=LIMITS)
    found = profile_inputs.read_requests(target, tiny.checkpoint)
    assert [known.sizes for known in found] == SHAPES
    for known in found:
        assert known.prepare_s > 0
        assert known.work.other_bytes > 0
    # without an ONNX file no work is counted
    plain = partial(profile_inputs.measure_requests, *files[:2], None, target, **settings)
    supervised(partial(plain, shapes=SHAPES[:1]), limits=LIMITS)
    (known,) = profile_inputs.read_requests(target, tiny.checkpoint)
    assert known.work is None
    # of another model they are refused
    rewrite(target, checkpoint="0" * 64)
    with pytest.raises(ArtifactError, match=r"a\.json: not made from .*checkpoint\.json"):
        profile_inputs.read_requests(target, tiny.checkpoint)
    # what could not be measured is a failure, of each profile too
    with pytest.raises(WorkFailed, match="takes 64 tokens"):
        longer = [{"batch": 1, "sequence": LONGEST + 1}]
        supervised(partial(work, shapes=longer), limits=LIMITS)
    write_failure(target, reason="requests not measured: a", transient=False)
    with pytest.raises(WorkFailed, match="requests not measured: a"):
        profile_inputs.read_requests(target, tiny.checkpoint)


def test_answers_have_the_label_of_the_largest_logit_and_its_probability() -> None:
    logits = np.array([[0.0, np.log(3.0)], [1000.0, 0.0]], np.float32)
    (first, second), labels = profile_inputs.named(logits, ["bad", "good"]), ["good", "bad"]
    assert [first[0], second[0]] == labels
    assert [first[1], second[1]] == pytest.approx([0.75, 1.0])

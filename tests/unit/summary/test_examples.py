"""Chance and thumbnails in the summary of a model of images."""

from typing import Any

from accuracy_records import accuracy_record
from tightrope.records.accuracy import AccuracyRecord
from tightrope.summary.examples import with_examples
from tiny_model import TinyModel

VARIANT = "cpu-openvino-int8-nncf-8"


def summary(model: str, task: str, *indices: int) -> Any:
    flipped = [{"index": index, "text": "an image"} for index in indices]
    result = {"model": model, "variant": VARIANT, "accuracy": {"flipped": flipped}}
    return {"models": {model: {"task": task}}, "results": [result]}


def record(model: str, labels: list[int]) -> AccuracyRecord:
    return accuracy_record(
        model=model, variant=VARIANT, host={}, libraries={}, data_sha256="d", labels=labels
    )


def test_images_whose_predictions_changed_have_thumbnails(tiny_images: TinyModel) -> None:
    name, splits = "pets", {"pets": {"evaluation": tiny_images.split("evaluation")}}
    judged = {(name, VARIANT): record(name, [0, 1, 1, 1])}
    document = summary(name, "image-classification", 2, 0)
    (model,) = with_examples(document, judged, splits)["models"].values()
    assert model["chance"] == 0.75
    assert set(model["thumbnails"]) == {"0", "2"}
    assert len(set(model["thumbnails"].values())) == 2
    assert all(uri.startswith("data:image/jpeg;base64,") for uri in model["thumbnails"].values())


def test_texts_have_none(tiny: TinyModel) -> None:
    name, splits = "texts", {"texts": {"evaluation": tiny.split("evaluation")}}
    document = summary(name, "text-classification", 1)
    (model,) = with_examples(document, {}, splits)["models"].values()
    assert (model["thumbnails"], model["chance"]) == ({}, None)

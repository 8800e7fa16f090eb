"""The rules of data and checkpoint for a model of images, from a configuration to the splits."""

from small_images import class_folders
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import DataManifest, SourceManifest
from tightrope.inputs.encode import read_split

MODEL = "pets"
DATA = f"artifacts/{MODEL}/data/data.json"
TRAIN = f"artifacts/{MODEL}/splits/train.json"
SOURCE = f"artifacts/{MODEL}/source/checkpoint.json"
KEYS = {
    "task": "image-classification",
    "checkpoint": "scratch:convnext?num_stages=2&hidden_sizes=[8,16]&depths=[1,1]&image_size=16",
    "data": "files:pets",
}


def test_images_become_splits_that_are_made_again_only_when_an_image_changed(unrun) -> None:
    class_folders(unrun / "pets", 50)
    shapes = [{"batch": 1, "height": 16, "width": 16}]
    unrun.configure(models={MODEL: KEYS}, shapes=shapes, buckets={"batch": [1]})
    made = unrun.run("--", TRAIN, SOURCE)
    assert made == {
        f"prepare_data/{MODEL}",
        f"split_data/{MODEL}-train",
        f"prepare_checkpoint/{MODEL}",
    }
    assert read_manifest(unrun / DATA, DataManifest)["labels"] == ["cat", "dog"]
    assert read_manifest(unrun / SOURCE, SourceManifest)["task"] == "image-classification"
    assert all(one["name"].startswith("pets/") for one in read_split(unrun / TRAIN))
    assert unrun.plan("--", TRAIN, SOURCE) == set()

    (unrun / "pets/cat/new.png").write_bytes(b"a new one")
    changed = {f"prepare_data/{MODEL}", f"split_data/{MODEL}-train"}
    assert unrun.plan("--", TRAIN, SOURCE) == changed

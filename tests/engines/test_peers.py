"""What benchmarks/peers does in this project's own environment: all but other tools' recipes."""

import sys
from pathlib import Path

import pytest
from tightrope.jobs.child import supervised
from tiny_model import LIMITS, LONGEST, SAMPLES, TinyModel

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks/peers"))

from make_peers import make
from recipes import RECIPES, Recipe
from source import Source, read_examples


@pytest.fixture
def source(tiny: TinyModel) -> Source:
    examples = read_examples(tiny.split("calibration"), SAMPLES)
    return Source(tiny.checkpoint.parent, tiny.simplified, examples, SAMPLES, LONGEST)


def test_a_part_of_the_split_calibrates_and_all_of_it_judges(source: Source, tiny) -> None:
    assert len(source.texts) == SAMPLES < len(source.examples)
    assert source.texts == [example["text"] for example in source.examples[:SAMPLES]]
    with pytest.raises(ValueError, match="has 40 examples, 41 are asked for: --samples fewer"):
        read_examples(tiny.split("calibration"), 41)


def test_nncf_judges_both_models_and_the_artifact_says_how_it_is_run(source, tmp_path) -> None:
    folder = tmp_path / "nncf"
    made = supervised(make, RECIPES["nncf-accuracy-int8"], source, folder, limits=LIMITS)
    assert made["status"] == "ok"
    assert made["inputs"] == {"input_ids": "i64", "attention_mask": "i64"}
    assert made["settings"] == {"device": "CPU", "config": {}}
    assert made["size_bytes"] < source.onnx.stat().st_size
    log = (folder / "nncf.log").read_text()
    assert "Metric of initial model" in log
    assert "Metric of quantized model" in log


def test_a_recipe_that_fails_is_a_result(source: Source, tmp_path: Path) -> None:
    def fail(_: Source, __: Path) -> None:
        raise RuntimeError("no model")

    recipe = Recipe("nncf", "a command", "model.onnx", fail)
    assert make(recipe, source, tmp_path / "x") == {"status": "failed: RuntimeError: no model"}

"""A plan says why it builds engines again that could serve the measured shapes."""

import json
from pathlib import Path
from typing import Any

import pytest
from tightrope.plan.announce import bucket_lines
from tightrope.plan.plan import Plan
from tightrope.variants import Variant

OPENVINO, PYTORCH = Variant("cpu", "openvino", "fp32"), Variant("cpu", "pytorch", "fp32")
PLAN = Plan(**{**dict.fromkeys(Plan._fields), "jobs": [("m", PYTORCH), ("m", OPENVINO)]})
BUILT = {"batch": [1, 8], "sequence": [32, 64, 128]}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lines(batch: int, buckets: Any = "auto") -> list[str]:
    """Of a model whose engine has the buckets BUILT."""
    engine = Path(f"artifacts/m/engines/{OPENVINO}/engine.json")
    engine.parent.mkdir(parents=True, exist_ok=True)
    engine.write_text(json.dumps({"status": "ok", "options": {"buckets": BUILT}}))
    model = {"task": "text-classification", "max_sequence": 128}
    shapes = [{"batch": batch, "sequence": 64}]
    return list(bucket_lines({"buckets": buckets, "shapes": shapes, "models": {"m": model}}, PLAN))


def test_a_batch_that_the_built_buckets_hold_is_told_with_the_key_that_keeps_the_engines() -> None:
    assert lines(4) == [
        "rebuilt: engines of m with buckets: auto, which follows shapes; "
        "buckets: {batch: [1, 8], sequence: [32, 64, 128]} holds these shapes as well and keeps "
        "the engines"
    ]


@pytest.mark.parametrize(
    ("batch", "buckets"), [(8, "auto"), (16, "auto"), (4, BUILT), (4, None)], ids=str
)
def test_engines_that_stay_or_have_to_be_built_are_not_told(batch: int, buckets: Any) -> None:
    assert lines(batch, buckets) == []


def test_without_an_engine_nothing_is_told() -> None:
    model = {"task": "text-classification", "max_sequence": 128}
    config = {"buckets": "auto", "models": {"m": model}, "shapes": []}
    assert list(bucket_lines(config, PLAN)) == []

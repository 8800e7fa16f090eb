import json
from typing import Any

import pytest
from accuracy_records import accuracy_record
from latency_records import latency_record, latency_shape
from report_pages import example, page_of, summary_of
from tightrope.decide.result import interval_of
from tightrope.model.config import activation_of
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.report.page import sections
from tightrope.report.sections.activations import activations_section
from tightrope.statistics import paired_difference, speedup
from tightrope.summary.pairs import Activation, activation_entries
from tightrope.summary.runs import Settings

MINUS = "\N{MINUS SIGN}"
EAGER, DEPLOYED = "cpu-pytorch-fp32", "cpu-openvino-fp32"
TRAINED = {
    **{"model": "relu", "status": "ok", "device": "cpu", "micro_batches": 1},
    "recipe": {"compile": False, "channels_last": False},
    **{"epoch_s": {"mean": 12.34, "spread": 0.5}, "peak_rss_bytes": 8 * 10**8},
}
REFERENCES = {"relu": "gelu", "silu": "gelu"}
BASELINES = {model: {"cpu": EAGER} for model in ("gelu", "relu", "silu")}
OWN = [[0.010, 0.011], [0.010, 0.012]] * 8
THEIRS = [[1.5 * seconds for seconds in block] for block in OWN]


def timed(model: str = "relu", variant: str = EAGER, **changes: Any) -> LatencyRecord:
    """A record of two batches, the reference half as slow again."""
    shapes = [latency_shape(OWN, THEIRS, batch=batch) for batch in (1, 8)]
    known = {"model": model, "baseline": variant, "plan": {"pairs": 16, "loads": 2}}
    return latency_record(variant, **{"shapes": shapes, **known, **changes})


def answers(model: str, wrong: int, count: int = 100, **facts: Any) -> AccuracyRecord:
    """Answers to `count` examples, the first `wrong` of them wrong."""
    predictions = [1] * wrong + [0] * (count - wrong)
    return accuracy_record(model=model, variant=EAGER, predictions=predictions, **facts)


def entries(records: list[LatencyRecord], *judged: AccuracyRecord) -> list[Activation]:
    known = {(one.model, one.variant): one for one in judged}
    given = {"references": REFERENCES, "baselines": BASELINES, "budget_points": 1.0}
    return activation_entries(records, known, Settings(unavailable=[], **given))


def summary() -> dict[str, Any]:
    """Of three models, of which the fastest one's OpenVINO failed."""
    failed = {"shapes": [], "status": "failed", "reason": "out of memory <here>", "baseline": None}
    records = [timed(), timed(variant=DEPLOYED, **failed), timed("silu"), timed("silu", DEPLOYED)]
    judged = answers("gelu", 40), answers("relu", 44), answers("silu", 30)
    found = entries(records, *judged)
    row = {"shape": {"batch": 1, "sequence": 64}, "paired_s": 0.0153}
    result = {"model": "gelu", "variant": EAGER, "host": found[0].host, "latency": [row]}
    own = {"top1": 0.6, "samples": 100}
    return {
        "models": {
            "gelu": {"activation": "gelu", "baselines": {"cpu": EAGER}},
            **{name: {"activation": name} for name in ("relu", "silu")},
        },
        "results": [{**result, "status": "ok", "device": "cpu", "accuracy": own}],
        "activations": found,
    }


def test_each_model_stands_beside_its_reference_with_ratios_and_paired_accuracy() -> None:
    judged = answers("gelu", 40), answers("relu", 44)
    (found,) = entries([timed(), timed(variant=DEPLOYED)], *judged)
    assert (found.model, found.reference, found.device) == ("relu", "gelu", "cpu")
    assert (found.accuracy.top1, found.accuracy.samples) == (0.56, 100)
    assert found.accuracy.change == pytest.approx(paired_difference(0, 4, 100))
    rows = [(row.variant, row.latency.shape.batch) for row in found.rows]
    assert rows == [(EAGER, 1), (EAGER, 8), (DEPLOYED, 1), (DEPLOYED, 8)]
    ratio = found.rows[0].latency.speedup
    assert interval_of(ratio) == speedup(OWN, THEIRS)
    assert ratio.verdict == "faster"


def test_what_failed_keeps_its_reason_and_has_no_times() -> None:
    own = timed(shapes=[], status="failed", reason="killed", baseline=None)
    theirs = timed(variant=DEPLOYED, baseline=None, baseline_failed="not built: no compiler")
    for one in theirs.shapes:
        one.baseline_blocks_s = None
    (found,) = entries([own, theirs])
    failed, *alone = found.rows
    assert (failed.status, failed.reason) == ("failed", "killed")
    assert failed.latency is None
    assert {row.reason for row in alone} == {"the reference: not built: no compiler"}
    assert [row.latency.speedup for row in alone] == [None, None]


def test_accuracy_is_not_compared_without_labels_or_on_other_examples() -> None:
    assert entries([timed()])[0].accuracy is None
    unlabelled = answers("relu", 0, labels=None)
    assert entries([timed()], answers("gelu", 40), unlabelled)[0].accuracy is None
    other = answers("gelu", 40, data_sha256="other")
    (found,) = entries([timed()], other, answers("relu", 44))
    assert (found.accuracy.top1, found.accuracy.delta) == (0.56, None)


def test_equal_answers_of_two_models_prove_no_budget() -> None:
    """Logits up to rounding prove it of two engines of one model."""
    same = [answers(name, 40, logits=[[1.0, 0.0]] * 100) for name in ("gelu", "relu")]
    (found,) = entries([timed()], *same)
    assert (found.accuracy.delta, found.accuracy.verdict) == (0.0, "undecided")


def test_the_report_has_a_row_for_each_activation_the_reference_first_then_by_accuracy() -> None:
    document = summary()
    (table,) = activations_section(summary_of(document), {})
    assert not table["trained"]
    document["training"] = [TRAINED | {"host": document["activations"][0].host}]
    (table,) = activations_section(summary_of(document), {})
    rows = [(row["activation"], row["accuracy"], row["training"]) for row in table["rows"]]
    assert [(name, accuracy.top1, accuracy.delta) for name, accuracy, _ in rows] == [
        ("gelu", 0.6, None),
        ("silu", 0.7, pytest.approx(0.1)),
        ("relu", 0.56, pytest.approx(-0.04)),
    ]
    assert [training and training.epoch_s.mean for *_, training in rows] == [None, None, 12.34]
    assert table["trained"]
    # the reference has times of its own, and no speed-up
    own, *_ = table["times"]
    assert (own["model"], own["call_s"], own["speedup"]) == ("gelu", 0.0153, None)
    failed = [one["reason"] for one in table["times"] if one["shape"] is None]
    assert failed == ["out of memory <here>"]
    ratios = [one["speedup"].ratio for one in table["times"] if one["speedup"]]
    assert ratios == pytest.approx([1.5] * 6)


def test_the_page_tells_what_failed_and_whose_activations_they_are() -> None:
    document = example(activations=summary()["activations"])
    document["models"] |= summary()["models"]
    document["training"] = [TRAINED | {"host": document["activations"][0].host}]
    found = page_of(document)
    assert f"relu 56.0 {MINUS}4.0 " in found.text and " 12.3 ± 0.50 800 " in found.text
    assert "in their activation alone" in found.text
    assert "out of memory &lt;here&gt;" in found.html
    assert sections(summary_of(example()))["activations"] == []


def test_the_activation_is_the_one_that_took_the_place_or_the_checkpoints_own(tmp_path):
    config = tmp_path / "config.json"
    assert activation_of(config) is None
    for document, name in (
        ({"hidden_act": "gelu"}, "gelu"),
        ({"hidden_act": "gelu", "tightrope_activation": "fast_swish"}, "fast_swish"),
        ({"activation": "gelu"}, "gelu"),
        ({"model_type": "resnet"}, None),
    ):
        config.write_text(json.dumps(document))
        assert activation_of(config) == name

"""Cascades entries of summary.json."""

from collections.abc import Mapping, Sequence
from typing import Any

from tightrope.records.cascade import BOTH, LARGE, NAMES, SMALL, CascadeRecord
from tightrope.records.paired_accuracy import Change, change
from tightrope.records.rounds import FEWEST_ROUNDS, blocks_of, time_ratio, undisturbed_rounds
from tightrope.statistics import AccuracyVerdict, Interval, share, trimmed_mean
from tightrope.summary.accuracy import top_one
from tightrope.summary.cascade_types import Agreement, Cascade, CascadeTraffic, Chosen, Served
from tightrope.summary.cascade_words import verdict_and_sentence
from tightrope.summary.measured import measured_entry
from tightrope.summary.noise import too_few_rounds
from tightrope.summary.ratios import ratio_entry
from tightrope.summary.result_types import Ratio
from tightrope.summary.traffic import Tests, rates_of
from tightrope.summary.traffic import why_disturbed as why_tests_were

Answers = Mapping[str, Any]
Rounds = Sequence[dict[str, Any]]


def cascade_entry(record: CascadeRecord, *, accept_disturbed: bool = False) -> Cascade:
    """Return the entry of a cascade's record, without times where other load left too few rounds.

    With `accept_disturbed` all rounds count for it then, and it is `provisional`.
    """
    kept_rounds, why = undisturbed_rounds(record.rounds), why_disturbed(record)
    provisional = why is not None and accept_disturbed
    counted = record.rounds if provisional else kept_rounds
    timed, answers = counted if len(counted) >= FEWEST_ROUNDS else [], record.evaluation
    entry: Cascade = {
        **measured_entry(record),
        "cascade": record.cascade,
        "small_model": record.small_model,
        "small_variant": record.small_variant,
        "agreement": record.agreement,
        "budget_points": record.budget_points,
        "batch": record.batch,
        "threshold": record.threshold,
        "chosen": chosen(record),
        "share": 1 - mean(answers["escalated"]) if answers else None,
        "small": served(record, SMALL, timed),
        "large": served(record, LARGE, timed),
        "both": served(record, BOTH, timed),
        "agreed": agreed(answers, BOTH) if answers else None,
        "against_large": against(record, BOTH, LARGE),
        "against_small": against(record, BOTH, SMALL),
        "kept": kept(record, BOTH) if answers else None,
        "small_kept": kept(record, SMALL) if answers else None,
        "over_large": speed_ratio(timed, LARGE),
        "over_small": speed_ratio(timed, SMALL),
        "traffic": under_traffic(record, accept_disturbed=accept_disturbed),
        "rounds": len(counted),
        "disturbed_rounds": len(record.rounds) - len(kept_rounds),
        "disturbed": why,
        "provisional": provisional,
        "verdict": "failed",
        "sentence": "",
    }
    entry["verdict"], sentence = verdict_and_sentence(entry, record.tests)
    return {**entry, "sentence": sentence + other_samples(entry, record)}


def other_samples(entry: Cascade, record: CascadeRecord) -> str:
    """Return that accuracy dropped on harder samples than chose the threshold, else nothing.

    The two shares of right answers differ where their 95 % intervals do not overlap.
    """
    right = [hits(answers, SMALL) for answers in (record.calibration, record.evaluation)]
    if entry["verdict"] != "accuracy dropped" or not all(right):
        return ""
    before, now = (share(sum(own), len(own)) for own in right)
    if before.low <= now.high:
        return ""
    return (
        f" {record.small_model} is right on {100 * before.value:.1f} % of the calibration samples "
        f"and on {100 * now.value:.1f} % of these: a threshold holds only for samples like those "
        "that chose it."
    )


def under_traffic(record: CascadeRecord, *, accept_disturbed: bool) -> CascadeTraffic | None:
    """Return rates and tail latency of the three under traffic, gains over the large model."""
    if record.traffic is None:
        return None
    plan, under = record.traffic["plan"], tests_of(record)
    return {
        "batch": plan["batch"],
        "p99_bound_s": plan["p99_bound_s"],
        "samples": record.traffic["samples"],
        "reason": record.traffic["reason"],
        "rows": []
        if record.traffic["reason"]
        else [
            {"served": name, **rates_of(under, name, accept_disturbed=accept_disturbed)}
            for name in NAMES.values()
        ],
    }


def tests_of(record: CascadeRecord) -> Tests:
    """Return the tests under traffic, empty without any."""
    tests = record.traffic["tests"] if record.traffic else []
    return Tests(tests, record.busiest, NAMES[LARGE])


def why_traffic_was_disturbed(record: CascadeRecord) -> str | None:
    """Return which scenarios other load disturbed; None without any."""
    found = (why_tests_were(tests_of(record), name) for name in NAMES.values())
    return next((why for why in found if why), None)


def why_disturbed(record: CascadeRecord) -> str | None:
    """Return why other load left too few rounds; None where it did not."""
    return too_few_rounds(record.rounds, "a round of the cascade", record.busiest)


def mean(values: Sequence[bool]) -> float:
    """Return the share of true values."""
    return sum(values) / len(values)


def chosen(record: CascadeRecord) -> Chosen | None:
    """Return what the chosen threshold does on the calibration split, None without one."""
    tests = [test for test in record.tests if test["threshold"] == record.threshold]
    if not tests or record.calibration is None:
        return None
    (test,), samples = tests, len(record.calibration["small"])
    return {
        "samples": samples,
        "share": test["answered"] / samples,
        "lost": test["lost"],
        "gained": test["gained"],
        "p_value": test["p_value"],
    }


def served(record: CascadeRecord, which: int, rounds: Rounds) -> Served:
    """Return accuracy, throughput and memory of a model alone or of the cascade."""
    right, rate, memory = hits(record.evaluation, which), None, record.peak_rss_bytes
    if rounds and record.block_samples is not None:
        seconds = [block[0] for block in blocks_of(rounds, which)]
        rate = trimmed_mean([record.block_samples / one for one in seconds])
    return {
        "accuracy": top_one(right) if right else None,
        "samples_per_s": rate and rate.value,
        "low": rate and max(0.0, rate.low),
        "high": rate and rate.high,
        "peak_rss_bytes": memory[which] if memory else None,
    }


def hits(answers: Answers | None, which: int) -> list[bool]:
    """Return for each prediction whether it equals the label; empty without answers or labels."""
    if answers is None or answers["labels"] is None:
        return []
    pairs = zip(answers[NAMES[which]], answers["labels"], strict=True)
    return [prediction == label for prediction, label in pairs]


def against(record: CascadeRecord, which: int, reference: int) -> Change | None:
    """Return the change of accuracy of one of the three against another, None without labels."""
    own, other = hits(record.evaluation, which), hits(record.evaluation, reference)
    return change(own, other, record.budget_points / 100) if own else None


def agreed(answers: Answers, which: int) -> Agreement:
    """Return how many answers of the small model or of the cascade are those of the large model."""
    pairs = zip(answers[NAMES[which]], answers["large"], strict=True)
    same = [own == theirs for own, theirs in pairs]
    found = share(sum(same), len(same))
    return {"share": found.value, "low": found.low, "high": found.high, "samples": len(same)}


def kept(record: CascadeRecord, which: int) -> AccuracyVerdict | None:
    """Return whether the evaluation split shows that budget or agreement is kept by one of them."""
    if record.agreement is None:
        judged = against(record, which, LARGE)
        return judged["verdict"] if judged else None
    if record.evaluation is None:
        return None
    found = agreed(record.evaluation, which)
    if found["low"] >= record.agreement:
        return "kept"
    return "dropped" if found["high"] < record.agreement else "undecided"


def speed_ratio(rounds: Rounds, which: int) -> Ratio | None:
    """Return samples per second of the cascade over those of a model alone, None without rounds."""
    if not rounds:
        return None
    ratio: Interval = time_ratio(blocks_of(rounds, which), blocks_of(rounds, BOTH))
    return ratio_entry(ratio)

"""LoadGen's traffic in the whole run: what its record says beside LoadGen's own logs."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from tightrope.artifacts.files import sha256
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.measure.traffic_padding import bucket_edges
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.traffic import FEWEST_ROUNDS, TrafficRecord
from tightrope.summary.traffic import TIE
from tiny_project import LEARNT, SMALL, WHOLE, Project

SCENARIOS, PADDINGS = ("single_stream", "offline", "server"), ("fixed", "longest", "bucketed")
RECORD, MADE = f"reports/{SMALL}/{LEARNT}.traffic.json", f"artifacts/{SMALL}"
BATCH, LONGEST = 4, 16


@pytest.fixture(scope="module")
def target(whole: Project) -> Path:
    return whole / RECORD


@pytest.fixture(scope="module")
def record(target: Path) -> TrafficRecord:
    return TrafficRecord.read(target)


@pytest.fixture(scope="module")
def last(record: TrafficRecord) -> dict[tuple[str, str], dict[str, Any]]:
    """The last test of each padding and scenario."""
    return {(test["name"], test["scenario"]): test for test in to_builtins(record.tests)}


def from_loadgens_summary(target: Path, name: str, label: str) -> float:
    """The number that LoadGen wrote for people to read, not the one in its detailed log."""
    text = (target.with_suffix("") / name / "mlperf_log_summary.txt").read_text()
    found = re.search(rf"^{re.escape(label)}\s*: (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


@pytest.mark.parametrize("scenario", SCENARIOS[:2])
def test_paddings_alternate_in_rounds_with_another_one_first_each_time(record, scenario) -> None:
    tests = [test for test in to_builtins(record.tests) if test["scenario"] == scenario]
    numbers = [test["round"] for test in tests]
    assert numbers == sorted(numbers)
    rounds = [[test["name"] for test in tests if test["round"] == one] for one in {*numbers}]
    assert len(rounds) >= FEWEST_ROUNDS
    assert all(sorted(one) == sorted(PADDINGS) for one in rounds)
    assert {one[0] for one in rounds} == {*PADDINGS}


def test_the_record_says_what_was_measured_with_what(whole: Project, record: TrafficRecord) -> None:
    encode = load_encoder(whole / f"{MADE}/checkpoint/checkpoint.json", max_sequence=LONGEST)
    split = whole / f"{MADE}/splits/timing.json"
    lengths = [len(row["input_ids"]) for row in encode(read_split(split))]
    assert record.lengths == lengths
    assert record.edges == bucket_edges(lengths, WHOLE["traffic"]["buckets"])
    assert (record.longest, record.threads, record.plan["batch"]) == (LONGEST, 2, BATCH)
    assert record.engine_sha256 == sha256(whole / f"{MADE}/engines/{LEARNT}/engine.json")
    assert record.data_sha256 == sha256(split)


def test_padding_is_that_of_the_kind_of_padding(record: TrafficRecord, last: dict) -> None:
    fixed, longest, bucketed = (last[padding, "offline"] for padding in PADDINGS)
    assert fixed["tokens"] + fixed["padded_tokens"] == LONGEST * fixed["samples"]
    of_longest, of_fixed = (one["padded_tokens"] / one["samples"] for one in (longest, fixed))
    needed = sum(min(e for e in record.edges if e >= n) - n for n in record.lengths)
    share = bucketed["padded_tokens"] / bucketed["samples"]
    assert share == pytest.approx(needed / len(record.lengths), rel=0.5)
    assert max(share, of_longest) < of_fixed


@pytest.mark.parametrize("padding", PADDINGS)
def test_numbers_are_those_that_loadgen_wrote_for_people(target, record, last, padding) -> None:
    offline, single = last[padding, "offline"], last[padding, "single_stream"]
    rate = from_loadgens_summary(
        target, f"{padding}-offline-{offline['round']}", "Samples per second"
    )
    assert offline["samples_per_s"] == pytest.approx(rate, rel=1e-4)
    name = f"{padding}-single_stream-{single['round']}"
    late_ns = from_loadgens_summary(target, name, "90.00 percentile latency (ns)")
    assert single["p90_s"] == pytest.approx(late_ns / 1e9)
    server = last[padding, "server"]
    for test in server["rates"]:
        name = f"{padding}-server-{test['target_per_s']:g}"
        late_ns = from_loadgens_summary(target, name, "99.00 percentile latency (ns)")
        assert test["p99_s"] == pytest.approx(late_ns / 1e9)
    valid = [rate for rate in server["rates"] if rate["valid"]]
    assert 1 <= len(valid) <= len(server["rates"]) <= 9
    assert all(rate["p99_s"] <= record.plan["p99_bound_s"] for rate in valid)
    best = max(valid, key=lambda rate: rate["target_per_s"])
    assert server["highest_per_s"] == best["target_per_s"]
    assert (server["issued_per_s"], server["reason"]) == (best["issued_per_s"], None)


def test_predictions_are_those_of_the_accuracy_record_apart_from_ties(whole, record) -> None:
    alone = AccuracyRecord.read(whole / f"reports/{SMALL}/{LEARNT}.accuracy.json")
    sent, judged = (
        [one["text"] for one in read_split(whole / f"{MADE}/splits/{split}.json")]
        for split in ("timing", "evaluation")
    )
    assert {*record.answers} == {*PADDINGS}
    for answers in record.answers.values():
        found = [answers.predictions[sent.index(text)] for text in judged]
        for one, other, margin in zip(found, alone.predictions, alone.margins, strict=True):
            assert one == other or margin <= TIE


def test_loadgens_logs_lie_beside_the_record_with_the_hashes_in_it(target, record) -> None:
    files = [one for one in target.with_suffix("").rglob("*") if one.is_file()]
    assert record.logs == {str(one.relative_to(target.parent)): sha256(one) for one in files}
    tests = to_builtins(record.tests)
    names = {
        f"{test['name']}-{test['scenario']}-{test['round']}"
        for test in tests
        if test["scenario"] != "server"
    }
    names |= {
        f"{test['name']}-server-{rate['target_per_s']:g}"
        for test in tests
        for rate in test.get("rates", ())
    }
    assert {Path(path).parent.name for path in record.logs} == names


def test_the_log_tells_which_test_runs_and_how_far_the_job_is(whole: Project) -> None:
    log = whole.log(f"measure_traffic/{SMALL}-{LEARNT}")
    for what in ("answering", "single stream", "offline", "server"):
        for padding in PADDINGS:
            assert re.search(rf"{what}, {padding}:\s+\d+%\|", log), (what, padding)
    assert len({*re.findall(r"(?:stream|offline|server), \w+:\s+(\d+)%", log)}) > 3

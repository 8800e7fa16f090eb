"""LoadGen's traffic in the whole run: what its record says beside LoadGen's own logs."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from tightrope.artifacts.files import sha256
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.records.accuracy import AccuracyRecord
from tightrope.studies.loadgen import bucket_edges
from tightrope.studies.study import StudyRecord
from tightrope.studies.table import STUDIES
from tightrope.studies.traffic import FEWEST_ROUNDS, TIE, LoadGenTest, Rehearsal
from tiny_project import LEARNT, SMALL, WHOLE, Project

SCENARIOS, PADDINGS = ("single_stream", "offline", "server"), ("fixed", "longest", "bucketed")
RECORD, MADE = f"reports/{SMALL}/{LEARNT}.traffic.json", f"artifacts/{SMALL}"
BATCH, LONGEST = 4, 16


@pytest.fixture(scope="module")
def target(whole: Project) -> Path:
    return whole / RECORD


@pytest.fixture(scope="module")
def record(target: Path) -> StudyRecord:
    return STUDIES["traffic"].read(target)


def loadgen_tests(record: StudyRecord) -> list[dict[str, Any]]:
    return [to_builtins(one) for one in record.calls if isinstance(one, LoadGenTest)]


@pytest.fixture(scope="module")
def last(record: StudyRecord) -> dict[tuple[str, str], dict[str, Any]]:
    """The last test of each padding and scenario."""
    return {(test["padding"], test["call"]): test for test in loadgen_tests(record)}


def from_loadgens_summary(target: Path, name: str, label: str) -> float:
    """The number that LoadGen wrote for people to read, not the one in its detailed log."""
    text = (target.with_suffix("") / name / "mlperf_log_summary.txt").read_text()
    found = re.search(rf"^{re.escape(label)}\s*: (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


@pytest.mark.parametrize("scenario", SCENARIOS[:2])
def test_paddings_alternate_in_rounds_with_another_one_first_each_time(record, scenario) -> None:
    tests = [test for test in loadgen_tests(record) if test["call"] == scenario]
    numbers = [test["round"] for test in tests]
    assert numbers == sorted(numbers)
    rounds = [[test["padding"] for test in tests if test["round"] == one] for one in {*numbers}]
    assert len(rounds) >= FEWEST_ROUNDS
    assert all(sorted(one) == sorted(PADDINGS) for one in rounds)
    assert {one[0] for one in rounds} == {*PADDINGS}


def test_the_record_says_what_was_measured_with_what(whole: Project, record: StudyRecord) -> None:
    encode = load_encoder(whole / f"{MADE}/checkpoint/checkpoint.json", max_sequence=LONGEST)
    split = whole / f"{MADE}/splits/timing.json"
    lengths = [len(row["input_ids"]) for row in encode(read_split(split))]
    sent = record.calls[0]
    assert (sent.samples, sent.of, sent.longest) == (len(lengths), len(lengths), LONGEST)
    assert sent.lengths == lengths
    assert sent.edges == bucket_edges(lengths, WHOLE["traffic"]["buckets"])
    assert (record.threads, record.settings["batch"], record.shape) == (2, BATCH, {})
    assert record.engine_sha256 == sha256(whole / f"{MADE}/engines/{LEARNT}/engine.json")


def test_padding_is_that_of_the_kind_of_padding(record: StudyRecord, last: dict) -> None:
    fixed, longest, bucketed = (last[padding, "offline"] for padding in PADDINGS)
    assert fixed["tokens"] + fixed["padded_tokens"] == LONGEST * fixed["samples"]
    of_longest, of_fixed = (one["padded_tokens"] / one["samples"] for one in (longest, fixed))
    sent = record.calls[0]
    needed = sum(min(e for e in sent.edges if e >= n) - n for n in sent.lengths)
    share = bucketed["padded_tokens"] / bucketed["samples"]
    assert share == pytest.approx(needed / sent.samples, rel=0.5)
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
    rates = [t for t in loadgen_tests(record) if (t["padding"], t["call"]) == (padding, "server")]
    for test in rates:
        name = f"{padding}-server-{test['target_per_s']:g}"
        late_ns = from_loadgens_summary(target, name, "99.00 percentile latency (ns)")
        assert test["p99_s"] == pytest.approx(late_ns / 1e9)
    valid = [test for test in rates if test["valid"]]
    assert 1 <= len(valid) <= len(rates) <= 9
    assert all(test["p99_s"] <= record.settings["p99_bound_s"] for test in valid)


def test_predictions_are_those_of_the_accuracy_record_apart_from_ties(whole, record) -> None:
    alone = AccuracyRecord.read(whole / f"reports/{SMALL}/{LEARNT}.accuracy.json")
    sent, judged = (
        [one["text"] for one in read_split(whole / f"{MADE}/splits/{split}.json")]
        for split in ("timing", "evaluation")
    )
    rehearsals = [one for one in record.calls if isinstance(one, Rehearsal)]
    assert [one.padding for one in rehearsals] == [*PADDINGS]
    for answers in rehearsals:
        found = [answers.predictions[sent.index(text)] for text in judged]
        for one, other, margin in zip(found, alone.predictions, alone.margins, strict=True):
            assert one == other or margin <= TIE


def test_loadgens_logs_lie_beside_the_record_with_the_hashes_in_it(target, record) -> None:
    files = [one for one in target.with_suffix("").rglob("*") if one.is_file()]
    logs: dict[str, str] = {}
    for test in loadgen_tests(record):
        logs |= test["logs"]
        number = test.get("target_per_s", test["round"])
        assert {Path(path).parent.name for path in test["logs"]} == {
            f"{test['padding']}-{test['call']}-{number:g}"
        }
    assert logs == {str(one.relative_to(target.parent)): sha256(one) for one in files}


def test_the_log_tells_which_test_runs_and_how_far_the_job_is(whole: Project) -> None:
    log = whole.log(f"measure_traffic/{SMALL}-{LEARNT}")
    for what in ("answering", "single stream", "offline", "server"):
        for padding in PADDINGS:
            assert re.search(rf"{what}, {padding}:\s+\d+%\|", log), (what, padding)
    assert len({*re.findall(r"(?:stream|offline|server), \w+:\s+(\d+)%", log)}) > 3

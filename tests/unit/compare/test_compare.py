"""What two reports say of each other: real ones, and changes planted in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from planted import busier, changed, compared, library, results_of, slower, written, wrong
from tightrope.compare.accuracy import FLIPS, RECORDS, TOTALS
from tightrope.compare.compare import Comparison, compare
from tightrope.compare.read import Key, read_report
from tightrope.compare.sections import Bound, broken, is_open, plain
from tightrope.errors import TightropeError
from tightrope.report.style.numbers import MINUS, TIMES

REPORTS = Path(__file__).parents[2] / "data/reports"
BOUNDS = (Bound("slower", 0.03), Bound("accuracy", 0.005), Bound("gone", 0.0))
ORT = "cpu-onnxruntime-fp32"
Summary = dict[str, Any]


@pytest.fixture
def beside(tmp_path: Path, steady: Summary) -> Callable[..., Comparison]:
    """The comparison of the steady run with itself after these changes, or the other way round."""

    def beside(*changes: Any, back: bool = False, **options: Any) -> Comparison:
        pair = [steady, changed(steady, *changes)]
        return compared(tmp_path, *pair[:: -1 if back else 1], **options)

    return beside


def lines(comparison: Comparison) -> list[str]:
    return [plain(one) for one in broken(comparison, BOUNDS)]


def of_reports(old: str, new: str) -> Comparison:
    """The comparison of two stored reports, with the records beside them."""
    return compare(*(read_report(REPORTS / name / "summary.json") for name in (old, new)))


def test_two_reports_of_a_busy_machine_pass() -> None:
    """The intervals alone of the second pair would call its only row 10 % faster or slower."""
    for pair, judged in ((("first", "again"), 8), (("two", "two-again"), 1)):
        for old, new in (pair, pair[::-1]):
            comparison = of_reports(old, new)
            assert not lines(comparison) and not comparison.moved
            assert sum(one.time is not None for one in comparison.speed) == judged
    assert {one.source for one in of_reports("first", "again").accuracy} == {RECORDS}
    # PyTorch's time changed fivefold within the one run, and was disturbed in the other
    comparison = of_reports("busy", "busier")
    assert not comparison.moved
    with pytest.raises(TightropeError, match="the baseline's time changed too much within a run"):
        lines(comparison)


def test_five_percent_planted_in_a_real_report_fail(tmp_path, two, beside):
    comparison = compared(tmp_path, two, changed(two, slower(1.05)))
    (line,) = lines(comparison)
    assert f"tiny cpu-openvino-fp32 at 4x16 is slower: 1.050{TIMES} (" in line
    back = compared(tmp_path, changed(two, slower(1.05)), two)
    assert not lines(back) and [one.verdict for one in back.speed if one.time] == ["faster"]
    # of one engine among several
    comparison = beside(slower(1.05, "openvino"))
    told = lines(comparison)
    slow = [one for one in comparison.speed if "openvino" in one.row.key.variant]
    assert len(told) == len(slow) > 0
    assert all(f" is slower: 1.050{TIMES}" in one and "allowed are 3.0%" in one for one in told)


def test_a_slowdown_within_the_bound_or_the_noise_or_of_the_machine_passes(beside, tmp_path, first):
    assert not lines(beside(slower(1.02)))
    noisy = compared(tmp_path, first, changed(first, slower(1.05)))
    assert not lines(noisy)
    assert any(is_open(one, BOUNDS) for one in noisy.speed)
    busy, same = beside(busier(1.4)), beside()
    assert not lines(busy) and not busy.moved
    # another speed makes intervals wider
    for one, wide in zip(same.speed, busy.speed, strict=True):
        if one.time and wide.time:
            assert wide.time.high > one.time.high * 1.1


def test_a_drop_of_accuracy_fails_by_the_summaries_alone(tmp_path: Path, first: Summary) -> None:
    comparison = compared(tmp_path, first, changed(first, wrong(8, "openvino-int8")))
    (line,) = lines(comparison)
    assert f"cpu-openvino-int8-nncf-8 lost accuracy: {MINUS}10.0 (" in line
    (one,) = [one for one in comparison.accuracy if one.verdict == "worse"]
    assert one.source == FLIPS
    assert one.flips is not None and len(one.flips) == 8
    assert one.flips[0].text == f"example {one.flips[0].example}"

    def unlisted(document: Summary) -> None:
        for result in document["results"]:
            result["accuracy"]["flips"] = 300

    other = changed(first, wrong(8, "openvino-int8"), unlisted)
    comparison = compared(tmp_path, changed(first, unlisted), other)
    (one,) = [one for one in comparison.accuracy if one.old != one.new]
    assert (one.source, one.flips) == (TOTALS, None)
    assert one.why_totals and "a summary does not list all flips" in one.why_totals
    assert one.delta and one.delta.low < -0.1 < one.delta.high < 0


def test_another_calibration_is_compared_and_a_record_is_not_with_itself(tmp_path: Path) -> None:
    old = read_report(REPORTS / "first/summary.json")
    document = changed(to_builtins(old.document), slower(1.3, "nncf"))
    for result in results_of(document, "nncf-8"):
        result |= {"variant": "cpu-openvino-int8-nncf-16", "calibration": "nncf-16"}
    for one in document["recommendations"]:
        one["variant"] = one["variant"] and one["variant"].replace("nncf-8", "nncf-16")
    same = next(one for one in document["results"] if one["variant"] == ORT)
    same["measured"] = old.results[Key("tiny", ORT)].measured
    comparison = compare(old, read_report(written(tmp_path, document)))
    assert (comparison.came, comparison.gone, comparison.choices) == ([], [], [])
    (cause,) = [one for one, _ in comparison.causes if one.name == "calibration"]
    assert (cause.old, cause.new) == ("nncf-8", "nncf-16")
    (one,) = [one for one in comparison.accuracy if "nncf" in one.key.variant]
    assert one.key.variant.endswith("nncf-16")
    reasons = {one.reason for one in comparison.speed if one.row.key.variant == ORT}
    assert reasons == {"the same measurement in both reports"}


def test_the_likely_cause_concerns_what_changed(beside: Any, steady: Summary) -> None:
    def another_seed(document: Summary) -> None:
        document["overrides"] = ["seed=2"]

    libraries = [library(name, "99.0") for name in ("onnxruntime", "openvino")]
    comparison = beside(slower(1.3, "onnxruntime"), *libraries, another_seed)
    (first, concerned), *others = comparison.causes
    assert (first.name, concerned) == ("onnxruntime", True)
    assert [one.name for one, _ in others] == ["overrides", "openvino"]
    slow = {one["variant"] for one in results_of(steady, "onnxruntime")}
    assert {key.variant for key in comparison.moved} == slow
    # of two real environments
    difference, _ = of_reports("first", "upgraded").causes[0]
    assert (difference.name, difference.kind) == ("onnxruntime", "library")
    assert (difference.old, difference.new) == ("1.31.1", "1.32.0")
    assert {key.variant.split("-")[1] for key in difference.concerns} == {"onnxruntime"}


def test_with_another_baseline_an_unchanged_variant_is_the_reference(beside: Any) -> None:
    """A faster PyTorch makes no other engine slower."""
    comparison = beside(slower(1.3), library("torch", "99.0"))
    baselines = [one for one in comparison.speed if "pytorch" in one.row.key.variant]
    assert [one.verdict for one in baselines] == ["faster"] * len(baselines)
    assert all(one.time and one.time.value == pytest.approx(1 / 1.3) for one in baselines)
    others = [one for one in comparison.speed if "pytorch" not in one.row.key.variant]
    assert {one.verdict for one in others} == {"same", "not judged"}
    assert not lines(comparison)


def test_where_everything_is_other_or_a_row_is_disturbed_no_time_is_judged(beside: Any) -> None:
    def threads(document: Summary) -> None:
        for result in document["results"]:
            result["threads"] = 7

    def disturb(document: Summary) -> None:
        for result in results_of(document, "openvino"):
            for row in result["latency"]:
                row.update(disturbed="other load", provisional=True)

    rows = [one for one in beside(slower(1.5), disturb).speed if "openvino" in one.row.key.variant]
    assert rows and all(one.verdict == "not judged" for one in rows)
    assert rows[0].reason == "disturbed by other load, its numbers are provisional"
    comparison = beside(threads)
    reason = "no variant is unchanged and measured in both"
    assert {one.reason for one in comparison.speed} == {reason}
    with pytest.raises(TightropeError, match=f"no time can be judged: {reason}"):
        lines(comparison)


def test_what_is_gone_and_another_choice_are_told(beside: Any, steady: Summary) -> None:
    def fail(document: Summary) -> None:
        (result,) = results_of(document, ORT)
        result.update(status="failed", reason="no such operator", latency=[], accuracy=None)

    def other(document: Summary) -> None:
        document["recommendations"][0]["variant"] = "cpu-other-fp32"

    comparison = beside(fail, other)
    assert lines(comparison) == [f"tiny {ORT} is gone: failed: no such operator"]
    (choice,) = comparison.choices
    old = steady["recommendations"][0]["variant"]
    assert (choice.old, choice.new) == (old, "cpu-other-fp32")
    back = beside(fail, back=True)
    assert not lines(back) and [key.variant for key in back.came] == [ORT]


def test_other_hosts_and_reports_of_other_models_are_refused(beside: Any) -> None:
    def host(**facts: Any) -> Callable[[Summary], None]:
        return lambda document: next(iter(document["hosts"].values())).update(facts)

    for fact, value in {"cpu": "another", "cores": 64, "isa": ["avx2"]}.items():
        with pytest.raises(TightropeError, match=f"different hosts: {fact} of tiny/.* --across-h"):
            beside(host(**{fact: value}))
        across = beside(host(**{fact: value}), across_hosts=True)
        assert across.causes[0][0].name == fact
    # a new driver is no other host, and concerns a GPU's variants alone
    causes = beside(host(driver="600.1", python="3.11.99")).causes
    found = {one.name: len(one.concerns) for one, _ in causes}
    assert found["driver"] == 0 < found["python"]

    def renamed(document: Summary) -> None:
        for result in document["results"]:
            result["model"] = "other"

    with pytest.raises(TightropeError, match=r"no model in common: .* has tiny, .* has other"):
        beside(renamed)


def test_code_that_changed_is_told_by_its_steps(tmp_path: Path, steady: Summary) -> None:
    def code(openvino: str) -> Callable[[Summary], None]:
        digests = {"build openvino": openvino, "build pytorch": "0123456789ab"}
        return lambda document: document.update(code=digests)

    old = changed(steady, code("0123456789ab"))
    new = changed(old, slower(1.3, "openvino"), code("000000000000"))
    ((cause, concerned),) = compared(tmp_path, old, new).causes
    assert (cause.name, cause.kind, concerned) == ("build openvino", "code", True)

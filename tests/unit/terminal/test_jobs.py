from pathlib import Path

import pytest
from tightrope.artifacts.failures import write_failure
from tightrope.terminal.ended import failure_of, reason_of_crash
from tightrope.terminal.jobs import Job, subject_of
from tiny_model import TinyModel


@pytest.mark.parametrize(
    ("rule", "wildcards", "expected"),
    [
        ("train_model", {"model": "m"}, "m"),
        ("measure_latency", {"model": "m", "variant": "cpu-pytorch-fp32"}, "m/cpu-pytorch-fp32"),
        ("build_openvino", {"model": "m", "device": "cpu", "rest": "fp32"}, "m/cpu-openvino-fp32"),
        ("quantize_onnx", {"model": "m", "scheme": "u8s8", "calibration": "c-8"}, "m/u8s8-c-8"),
        ("compare", {"model": "m", "variant": "a", "rival": "b"}, "m/a b"),
        ("summarize", {}, ""),
    ],
)
def test_a_job_is_named_by_its_model_and_variant(
    rule: str, wildcards: dict[str, str], expected: str
) -> None:
    assert subject_of(rule, wildcards) == expected


def test_a_record_of_a_failure_gives_its_reason_whatever_its_kind(tmp_path: Path) -> None:
    for name in ("engine.json", "model.onnx"):
        path = tmp_path / name
        write_failure(path, reason=f"{name} was not made", transient=False)
        assert failure_of([str(path)]) == f"{name} was not made"


def test_a_reason_is_fit_for_a_terminal_whoever_wrote_the_record(tmp_path: Path) -> None:
    path = tmp_path / "engine.json"
    write_failure(path, reason="a\x1b[2Jb", transient=False)
    assert failure_of([str(path)]) == "a\\x1b[2Jb"


def test_what_was_made_is_no_failure(tiny: TinyModel, tmp_path: Path) -> None:
    (tmp_path / "ok.json").write_text('{"status": "ok"}')
    (tmp_path / "page.html").write_text("failed")
    made = [tmp_path / "ok.json", tmp_path / "page.html", tmp_path / "missing.json"]
    assert failure_of([str(path) for path in (*made, tiny.minmax, tiny.u8s8)]) is None


def test_a_broken_record_is_a_failure_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text('{"status": ')
    assert str(path) in str(failure_of([str(path)]))


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("error: texts.csv: no column\n", "texts.csv: no column"),
        ("1/2\nTraceback (most recent call last):\n  x\nValueError: bad\n", "ValueError: bad"),
        ("predicting: 40%|##\n", "killed by SIGKILL (out of memory, or from outside)"),
        ("error: a\x1b[2Jb\n", "a\\x1b[2Jb"),
        (None, "killed by SIGKILL (out of memory, or from outside)"),
    ],
)
def test_a_crash_is_told_in_one_line_from_the_log_or_else_from_the_exception(
    log: str | None, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "job.log"
    if log is not None:
        path.write_text(log)
    told = (
        'CalledProcessError in file "a.smk", line 1:\n'
        "Command 'python x.py' died with <Signals.SIGKILL: 9>."
    )
    assert reason_of_crash([str(path)], told) == expected


def test_a_job_is_known_by_rule_and_subject() -> None:
    assert Job("measure_latency", "m/a").key == "measure_latency m/a"
    assert Job("summarize", "").key == "summarize"
    assert Job("measure_latency", "m/a").words == "measure latency"

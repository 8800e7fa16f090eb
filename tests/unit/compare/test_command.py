"""The commands: what they print, their exit codes, and one line for what they refuse."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from planted import Change, changed, library, slower, written
from tightrope.report.style.numbers import TIMES

ROOT = Path(__file__).parents[3]
REPORTS = ROOT / "tests/data/reports"
FIRST = str(REPORTS / "first/summary.json")


def command(tool: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "tools" / tool, *words], capture_output=True, text=True, check=False
    )


def compare(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return command("compare_reports.py", *words)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The only line of a refusal."""
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


def test_a_report_against_itself_passes() -> None:
    bounds = ("--fail-on", "slower:3%", "--fail-on", "accuracy:0.5", "--fail-on", "gone")
    done = compare(FIRST, FIRST, *bounds)
    assert done.returncode == 0, done.stderr
    assert "no bound is broken" in done.stdout
    assert "nothing that the summaries hold is different" in done.stdout


def test_a_slowdown_fails_and_its_likely_cause_is_named(
    tmp_path: Path, steady: dict[str, Any]
) -> None:
    worse = changed(steady, slower(1.05, "openvino"), library("openvino", "2027.1.0"))
    files = {name: tmp_path / f"out.{name}" for name in ("markdown", "html")}
    options = [word for name, path in files.items() for word in (f"--{name}", path)]
    old, new = written(tmp_path / "old", steady), written(tmp_path / "new", worse)
    done = compare(old, new, "--fail-on", "slower:3%", *options)
    assert done.returncode == 1
    cause = "the likely cause of what changed beyond the noise: openvino: "
    assert cause in done.stdout
    assert f"is slower: 1.050{TIMES}" in done.stdout
    assert "`cpu-openvino-fp32` at " in files["markdown"].read_text()
    page = files["html"].read_text()
    assert "<code>cpu-openvino-fp32</code>" in page and "Content-Security-Policy" in page
    assert compare(old, new).returncode == 0  # no bound was given


def test_bad_bounds_and_words_are_told_in_one_line() -> None:
    for bound in ("slow:3%", "slower", "slower:-1%", "slower:nan%", "accuracy:1%", "gone:1"):
        assert refused(compare(FIRST, FIRST, "--fail-on", bound)).startswith(
            f"error: --fail-on {bound}: no"
        ) or "has no limit" in refused(compare(FIRST, FIRST, "--fail-on", bound))
    assert "required: NEW" in refused(compare(FIRST))
    assert "--help" in refused(compare(FIRST, FIRST, "--wrong"))


def another_schema(document: dict[str, Any]) -> None:
    document["schema"] = 4


def another_type(document: dict[str, Any]) -> None:
    document["results"][0]["latency"] = "none"


def no_results(document: dict[str, Any]) -> None:
    del document["results"]


def twice(document: dict[str, Any]) -> None:
    document["results"].append(document["results"][0])


def impossible(document: dict[str, Any]) -> None:
    document["results"][1]["latency"][0]["speedup"]["ratio"] = -2.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (another_schema, "its schema is 4, 3 is read"),
        (another_type, "$.results[0].latency"),
        (no_results, "it has no results"),
        (twice, "twice"),
        (impossible, "has a speed-up of -2.0 from"),
    ],
)
def test_a_summary_of_another_kind_is_refused(
    change: Change, words: str, tmp_path: Path, steady: dict[str, Any]
) -> None:
    line = refused(compare(FIRST, written(tmp_path, changed(steady, change))))
    assert "no summary to compare: " in line and words in line


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"\xff\xfe", b'{"schema": 3, "created": NaN}', b"[" * 10_000, b"null"],
)
def test_a_broken_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_bytes(content)
    assert "no summary to compare" in refused(compare(FIRST, path))


def test_a_half_written_file_and_one_with_nan_are_refused(tmp_path: Path) -> None:
    text = (REPORTS / "first/summary.json").read_text()
    path = tmp_path / "summary.json"
    for place in (10, len(text) // 2, len(text) - 3):
        path.write_text(text[:place])
        assert "no summary to compare" in refused(compare(FIRST, path))
    path.write_text(text.replace('"machine_spread": ', '"machine_spread": NaN, "x": ', 1))
    assert "no summary to compare" in refused(compare(FIRST, path))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "none", tmp_path / "pipe"):
        assert str(path) in refused(compare(FIRST, path))

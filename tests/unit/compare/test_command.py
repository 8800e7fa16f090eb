"""The command: what it prints, its exit codes, and one line for what it refuses."""

import itertools
import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from planted import changed, library, slower, written
from programs import printed_in
from tightrope.report.style.numbers import TIMES

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools/compare_reports.py"
FIRST = ROOT / "tests/data/reports/first/summary.json"
TEXT = FIRST.read_text()
PAIR = (FIRST, FIRST)


class Done(NamedTuple):
    code: int
    output: str
    errors: str


Command = Callable[..., Done]


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command in this process: its exit code and what it prints."""
    main = runpy.run_path(str(TOOL))["main"]
    return lambda *words: Done(main([*map(str, words)]), *capsys.readouterr())


@pytest.fixture
def refused(compare: Command) -> Callable[..., str]:
    """The only line of a refusal."""

    def refused(*words: str | Path) -> str:
        done = compare(*words)
        assert (done.code, done.output) == (2, "")
        (line,) = done.errors.splitlines()
        return line

    return refused


def test_a_report_against_itself_passes() -> None:
    bounds = ["--fail-on", "slower:3%", "--fail-on", "accuracy:0.5", "--fail-on", "gone"]
    printed = printed_in(ROOT, TOOL, *PAIR, *bounds)
    assert "no bound is broken" in printed
    assert "nothing that the summaries hold is different" in printed


def test_a_slowdown_fails_and_its_likely_cause_is_named(compare, tmp_path, steady):
    worse = changed(steady, slower(1.05, "openvino"), library("openvino", "2027.1.0"))
    files = {name: tmp_path / f"out.{name}" for name in ("markdown", "html")}
    options = [word for name, path in files.items() for word in (f"--{name}", path)]
    old, new = written(tmp_path / "old", steady), written(tmp_path / "new", worse)
    done = compare(old, new, "--fail-on", "slower:3%", *options)
    assert done.code == 1
    assert "the likely cause of what changed beyond the noise: openvino: " in done.output
    assert f"is slower: 1.050{TIMES}" in done.output
    assert "`cpu-openvino-fp32` at " in files["markdown"].read_text()
    page = files["html"].read_text()
    assert "<code>cpu-openvino-fp32</code>" in page and "Content-Security-Policy" in page
    assert compare(old, new).code == 0  # no bound was given


def test_bad_bounds_and_words_are_told_in_one_line(refused: Callable[..., str]) -> None:
    for bound, words in {
        "slow:3%": "no such bound",
        **dict.fromkeys(["slower", "slower:-1%", "slower:nan%", "accuracy:1%"], "no limit"),
        "gone:1": "gone has no limit",
    }.items():
        assert refused(*PAIR, "--fail-on", bound).startswith(f"error: --fail-on {bound}: {words}")
    assert "required: NEW" in refused(FIRST)
    assert "--help" in refused(*PAIR, "--wrong")


DOCUMENT = json.loads(TEXT)
FIRST_RESULT, SECOND = DOCUMENT["results"][:2]
ROW = SECOND["latency"][0]
IMPOSSIBLE = {**ROW, "speedup": {**ROW["speedup"], "ratio": -2.0}}


def with_result(place: int, **fields: Any) -> str:
    """The summary whose result at that place has these fields."""
    results = list(DOCUMENT["results"])
    results[place] = {**results[place], **fields}
    return json.dumps({**DOCUMENT, "results": results})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        *((one, "") for one in ("", "[]", "{", "null", "[" * 10_000, "\udcff")),
        ('{"schema": 7, "created": NaN}', ""),
        # half written
        *((TEXT[:place], "") for place in (10, len(TEXT) // 2, len(TEXT) - 3)),
        (TEXT.replace('"machine_spread": ', '"machine_spread": NaN, "x": ', 1), ""),
        (TEXT.replace('"schema": 7', '"schema": 3'), "its schema is 3, 7 is read; make its report"),
        (with_result(0, latency="none"), "$.results[0].latency"),
        (TEXT.replace('"results": ', '"others": ', 1), "unknown field `others`"),
        (with_result(1, **FIRST_RESULT), "twice"),
        (with_result(1, latency=[IMPOSSIBLE]), "has a speed-up of -2.0 from"),
    ],
    ids=itertools.count(),
)
def test_what_is_no_summary_is_refused(refused, tmp_path, content, words):
    path = tmp_path / "summary.json"
    path.write_text(content, errors="surrogateescape")
    line = refused(FIRST, path)
    assert "no summary to compare: " in line and words in line

"""The bar of a traffic job, as the terminal reads it from the job's log."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tightrope.jobs import progress as bars
from tightrope.measure.traffic_scenarios import Progress
from tightrope.terminal.progress_bars import progress_in


@pytest.fixture
def shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], str]:
    """What the terminal shows of all that was written so far."""
    monkeypatch.setattr(bars, "INTERVAL_SECONDS", 0.0)

    def shown() -> str:
        with (tmp_path / "job.log").open("a") as stream:
            stream.write(capsys.readouterr().err)
        progress = progress_in(tmp_path / "job.log")
        return progress.words.partition(" %")[0] if progress else ""

    return shown


def test_each_test_is_named_with_the_share_that_is_done(shown: Callable[[], str]) -> None:
    with Progress("serving", 200.0) as progress:
        progress.begin("offline, fixed", 50.0)
        assert shown() == "offline, fixed 0"
        progress.end()
        progress.begin("server, longest", 150.0)
        assert shown() == "server, longest 25"
        progress.began -= 50.0
        progress.tell()
        assert shown() == "server, longest 50", "while it runs"
        progress.end()
    assert shown() == ""


def test_tests_that_take_longer_are_omitted_or_added_never_fill_the_bar(
    shown: Callable[[], str],
) -> None:
    with Progress("serving", 100.0) as progress:
        progress.begin("server, fixed", 40.0)
        progress.end()
        for expected, percent in ((-20.0, 50), (80.0, 25), (-130.0, 99)):
            progress.expect(expected)
            progress.begin("server, longest", 60.0)
            assert shown() == f"server, longest {percent}"

"""The bar of a traffic job, as the terminal reads it from the job's log."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tightrope.measure.traffic.progress import Progress
from tightrope.terminal.jobs import progress_in

Shown = Callable[[], str]


@pytest.fixture
def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shown:
    """What the terminal shows of all that was written so far."""

    def shown() -> str:
        with (tmp_path / "job.log").open("a") as stream:
            stream.write(capsys.readouterr().err)
        progress = progress_in(tmp_path / "job.log")
        return progress.words.partition(" %")[0] if progress else ""

    return shown


def test_each_test_is_named_with_the_share_that_is_done(shown: Shown) -> None:
    progress = Progress(200.0)
    progress.begin("offline, fixed", 50.0)
    assert shown() == "offline, fixed 0"
    progress.end()
    progress.begin("server, longest", 150.0)
    assert shown() == "server, longest 25"
    progress.end()
    progress.close()
    assert shown() == ""


def test_a_long_test_tells_how_far_it_is_while_it_runs(shown: Shown) -> None:
    progress = Progress(2.0, update_seconds=0.0)
    progress.begin("server, fixed", 2.0)
    progress.began -= 1.0
    progress.tell()
    assert shown() == "server, fixed 50"
    progress.update_seconds, progress.began = 60.0, progress.began - 0.5
    progress.tell()
    assert shown() == "server, fixed 50", "told a moment ago"


def test_tests_that_take_longer_are_omitted_or_added_never_fill_the_bar(shown: Shown) -> None:
    progress = Progress(100.0, update_seconds=0.0)
    progress.begin("server, fixed", 40.0)
    progress.tell()
    progress.end()
    for expected, percent in ((-20.0, 50), (80.0, 25), (-130.0, 98)):
        progress.expect(expected)
        progress.begin("server, longest", 60.0)
        assert shown() == f"server, longest {percent}"

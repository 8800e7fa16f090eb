"""The bar of a traffic job, as the terminal reads it from the job's log."""

import time
from pathlib import Path

import pytest
from tightrope.measure.traffic.progress import UPDATE_SECONDS, Progress
from tightrope.terminal.progress_bars import progress_in


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of the job, filled by `read`."""
    return tmp_path / "job.log"


def read(log: Path, capsys: pytest.CaptureFixture[str]) -> str | None:
    """What the terminal shows of all that was written so far."""
    with log.open("a") as stream:
        stream.write(capsys.readouterr().err)
    progress = progress_in(log)
    return progress and progress.words


def test_each_test_is_named_with_the_share_that_is_done(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(200.0)
    progress.begin("offline, fixed", 50.0)
    assert (read(log, capsys) or "").startswith("offline, fixed 0 %")
    progress.end()
    progress.begin("server, longest", 150.0)
    assert (read(log, capsys) or "").startswith("server, longest 25 %")
    progress.end()
    progress.close()
    assert read(log, capsys) is None


def test_a_long_test_tells_how_far_it_is_while_it_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = Progress(2.0, update_seconds=0.1)
    progress.begin("server, fixed", 2.0)
    end = time.monotonic() + 1.3
    while time.monotonic() < end:
        progress.tell()
        time.sleep(0.01)
    written = capsys.readouterr().err
    assert 5 <= written.count("server, fixed") <= 16
    assert "50%" in written
    assert UPDATE_SECONDS <= 20 / 2


def test_a_test_that_takes_longer_than_expected_never_fills_the_bar(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(100.0, update_seconds=0.0)
    for _ in range(3):
        progress.begin("server, fixed", 60.0)
        progress.tell()
        progress.end()
    progress.begin("server, longest", 60.0)
    assert (read(log, capsys) or "").startswith("server, longest 99 %")


def test_tests_that_are_omitted_or_added_change_the_whole(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(100.0)
    progress.begin("server, fixed", 40.0)
    progress.end()
    progress.expect(-20.0)
    progress.begin("server, longest", 40.0)
    assert (read(log, capsys) or "").startswith("server, longest 50 %")
    progress.expect(80.0)
    progress.begin("server, longest", 40.0)
    assert (read(log, capsys) or "").startswith("server, longest 25 %")

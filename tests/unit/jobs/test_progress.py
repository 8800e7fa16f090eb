import time
from collections.abc import Callable

import pytest
from tightrope.jobs.progress import ProgressBar
from tightrope.terminal.jobs import progress_in

Told = Callable[[], dict[str, list[int]]]


def test_the_terminal_reads_percent_and_time_left_from_the_log(told, capfd, tmp_path) -> None:
    log = tmp_path / "job.log"
    with ProgressBar("sensitivity", 200) as bar:
        time.sleep(0.2)
        bar.add(1)
        log.write_text(capfd.readouterr().err)
        found = progress_in(log)
        assert found is not None
        assert found.words.startswith("sensitivity 0 %, ")
        assert 39 <= (found.left or 0) <= 100
        bar.reach(100)
        bar.reach(50)
        assert told()["sensitivity"][-1] == 50
        bar.add(10)
        assert told()["sensitivity"][-1] == 55
    log.write_text(capfd.readouterr().err)
    assert progress_in(log) is None, "another step has begun"


def test_a_step_is_complete_at_its_end_alone_unless_it_fails(told: Told) -> None:
    with ProgressBar("search", 3) as bar:
        bar.reach(7)
        assert told()["search"] == [0, 99]
    assert told()["search"] == [100]
    with ProgressBar("racing", 0) as bar:  # of nothing
        bar.add(0)
    assert told()["racing"][-1] == 100
    with pytest.raises(ValueError, match="no"), ProgressBar("costs", 4) as bar:
        bar.add()
        raise ValueError("no")
    assert told()["costs"] == [0, 25, 25]


def test_it_is_written_rarely(capfd: pytest.CaptureFixture[str]) -> None:
    with ProgressBar("predicting", 10_000) as bar:
        for _ in range(10_000):
            bar.add()
    assert capfd.readouterr().err.count("predicting") <= 3

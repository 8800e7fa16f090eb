import io
import os
import time
from pathlib import Path

import pytest
from tightrope.durations import in_words
from tightrope.terminal import jobs
from tightrope.terminal.jobs import Job, Run, Seconds, job_of, progress_in, subject_of
from tightrope.terminal.plugin import PlainScreen
from tqdm import tqdm


def run_of(folder: Path, **planned_jobs: int) -> Run:
    run = Run(Seconds(folder / "seconds.json"))
    run.plan(Job(rule, "") for rule, count in planned_jobs.items() for _ in range(count))
    return run


def do(run: Run, number: int, rule: str, subject: str, began: float, took: float) -> None:
    run.start(number, Job(rule, subject, began=began))
    run.seconds.keep(*run.end(number, began + took))


def test_nothing_is_said_of_the_time_left_where_nothing_is_known(tmp_path: Path) -> None:
    # a broken file of seconds is as good as none
    for text in ("", "[1]", '{"build a": "x", "build b": -1}', '{"build a'):
        (tmp_path / "seconds.json").write_text(text)
        assert Seconds(tmp_path / "seconds.json").of_rule("build") is None
    run = run_of(tmp_path, build=2, measure=8)
    assert run.seconds_left(0.0) is None
    assert jobs.planned(run)[0].text == "10 jobs"
    do(run, 1, "build", "a", 0.0, 4.0)
    assert (run.seconds_left(4.0), run.share_done(4.0)) == (None, None)
    assert jobs.count_and_left(run, 4.0) == "1/10 jobs"


def test_the_time_left_comes_from_the_jobs_of_this_run(tmp_path: Path) -> None:
    run = run_of(tmp_path, build=2, measure=2)
    do(run, 1, "build", "a", 0.0, 4.0)
    do(run, 2, "measure", "a", 4.0, 10.0)
    assert run.seconds_left(14.0) == pytest.approx(14.0)
    run.start(3, Job("build", "b", began=14.0))
    assert run.seconds_left(17.0) == pytest.approx(1.0 + 10.0)
    assert run.seconds_left(30.0) == pytest.approx(10.0)
    # the next run knows it before any job is done
    after = run_of(tmp_path, build=2, measure=2)
    assert after.seconds_left(100.0) == pytest.approx(28.0)
    assert jobs.planned(after)[0].text == "4 jobs, about 28 s, estimated from earlier runs"


def test_the_estimate_knows_each_job_and_takes_the_mean_of_the_others_for_a_new_one(tmp_path):
    before = run_of(tmp_path, build=2)
    do(before, 1, "build", "small", 0.0, 1.0)
    do(before, 2, "build", "large", 1.0, 99.0)
    again = Run(Seconds(tmp_path / "seconds.json"))
    again.plan([Job("build", "large")])
    assert again.seconds_left(0.0) == pytest.approx(99.0)
    again.plan([Job("build", "large"), Job("build", "small"), Job("draw", "large")])
    assert again.seconds_left(0.0) == pytest.approx(150.0)
    again.start(1, Job("build", "large", began=10.0))
    again.end(1, 109.0)
    assert again.seconds_left(109.0) == pytest.approx(2.0)


def test_the_percent_goes_by_expected_seconds_and_not_by_jobs(tmp_path: Path) -> None:
    before = run_of(tmp_path, build=1, measure=1)
    do(before, 1, "build", "a", 0.0, 10.0)
    do(before, 2, "measure", "a", 10.0, 90.0)
    run = run_of(tmp_path, build=1, measure=1)
    do(run, 1, "build", "a", 0.0, 10.0)
    assert jobs.count_and_left(run, 10.0) == "1/2 jobs, 10 %, about 90 s left"
    run.start(2, Job("measure", "a", began=10.0))
    assert run.share_done(55.0) == pytest.approx(0.55)
    # slower than before: it has not ended yet
    assert run.share_done(200.0) == pytest.approx(0.99)
    assert jobs.count_and_left(run, 200.0) == "1/2 jobs"
    run.end(2, 200.0)
    assert run.share_done(200.0) == 1.0
    # jobs that run at once halve the time left
    run = run_of(tmp_path, draw=6)
    for number in (1, 2):
        run.start(number, Job("draw", str(number), began=0.0))
    for number in (1, 2):
        run.seconds.keep(*run.end(number, 10.0))
    assert run.seconds_left(10.0) == pytest.approx(20.0)


def test_a_failed_record_is_told_below_its_job(tmp_path: Path) -> None:
    run = run_of(tmp_path, build_tvm=10)
    job = Job("build_tvm", "m/cpu-tvm-fp32")
    run.start(1, job)
    run.end(1, 2.0)
    lines = [line.text for line in jobs.ended(run, job, 2.0, run.fail("no compiler"))]
    assert lines[0] == "[ 1/10]   2.0 s  build tvm  m/cpu-tvm-fp32"
    assert lines[1:] == [" " * 17 + "failed: no compiler"]
    assert jobs.closing(run, 2.0)[0].text == "1 of 10 jobs in 2.0 s, 1 with a failed record"
    # a reason is told once
    assert run.fail("not built: no compiler") == "not built (the reason is above)"
    assert run.fail("not built: out of memory") == "not built: out of memory"
    assert run.failed == 3
    # a job that gets another attempt has not ended
    run.crashed += 1
    run.again(job)
    assert (run.done, run.crashed) == (0, 0)


def test_seconds_in_words() -> None:
    told = [in_words(seconds) for seconds in (0.04, 9.96, 99, 100, 4800)]
    assert told == ["0.0 s", "10 s", "99 s", "2 min", "1 h 20 min"]


def test_how_far_a_step_is_comes_from_the_last_bar_in_its_log(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("loading\n")
    assert progress_in(path) is progress_in(tmp_path / "missing.log") is None
    for what, total, scaled in (("predicting", 30, False), ("fine-tuning", 30000, True)):
        stream = io.StringIO()
        bar = tqdm(total=total, desc=what, unit_scale=scaled, file=stream, mininterval=0)
        bar.update(total * 0.4)
        path.write_text(stream.getvalue())
        assert progress_in(path).words.startswith(f"{what} 40 %")
        bar.update(total * 0.6)
        bar.close()
        path.write_text(stream.getvalue())
        assert progress_in(path) is None


def test_the_bar_of_a_running_job_says_how_long_it_takes_whatever_it_took_before(tmp_path):
    run = run_of(tmp_path, train=2)
    do(run, 1, "train", "m", 0.0, 4.0)
    log = tmp_path / "job.log"
    log.write_text("fine-tuning:  25%|##   | 100/400 [00:30<01:30, 3.3it/s]\r")
    run.start(2, Job("train", "n", logs=[str(log)], began=4.0))
    assert run.seconds_left(34.0) == pytest.approx(90.0)
    log.write_text("predicting: 100%|#####| 4/4 [00:01<00:00, 3.3it/s]\n")
    assert run.seconds_left(5.0) == pytest.approx(3.0)
    # the log of an earlier run says nothing of a job that has just begun
    log.write_text("search:  40%|##   | 120.0/300 [02:00<03:00]\r")
    job = Job("search", "m", logs=[str(log)], began=time.monotonic() - 5.0)
    assert job.progress() is not None
    os.utime(log, (0, time.time() - 10.0))
    assert job.progress() is None


def test_of_many_jobs_the_first_are_shown_and_how_far_one_is_below_it_where_it_is_narrow(tmp_path):
    run = run_of(tmp_path, build=21)
    do(run, 0, "build", "m/0", 0.0, 4.0)
    for number in range(20):
        run.start(number, Job("build", f"m/{number}", began=float(number)))
    lines = jobs.running_lines(run, 30.0, 80)
    assert lines[0].strip() == "30 s  build  m/0  of about 4.0 s"
    assert (len(lines), lines[-1]) == (9, "and 12 more")
    narrow = [one.strip() for one in jobs.running_lines(run, 30.0, 30)]
    assert narrow[:2] == ["30 s  build  m/0", "of about 4.0 s"]


def test_output_that_is_no_terminal_says_in_each_silence_how_far_the_job_and_the_run_are(tmp_path):
    run = run_of(tmp_path, measure=3)
    do(run, 1, "measure", "m/a", time.monotonic() - 60.0, 60.0)
    log = tmp_path / "job.log"
    log.write_text("predicting:  25%|##   | 100/400 [00:30<01:30, 3.3it/s]\r")
    run.start(2, Job("measure", "m/b", logs=[str(log)], began=time.monotonic() - 1.0))
    run.start(3, Job("measure", "m/c", began=time.monotonic()))
    stream = io.StringIO()
    screen = PlainScreen(stream, silence=0.1)
    screen.start(run)
    time.sleep(0.35)
    screen.stop()
    lines = stream.getvalue().splitlines()
    assert 1 <= len(lines) <= 3
    assert lines[0].split("  ")[-4:] == [
        *("m/b", "predicting 25 %, 1:30 left", "and 1 more"),
        "(1/3 jobs, 29 %, about 2 min left)",
    ]
    time.sleep(0.2)
    assert stream.getvalue().splitlines() == lines
    # there is none while jobs end
    screen = PlainScreen(io.StringIO(), silence=0.3)
    screen.start(run)
    for _ in range(12):
        screen.show(jobs.ended(run, Job("build", "m/b"), 0.05, None))
        time.sleep(0.03)
    screen.stop()
    assert len(screen.stream.getvalue().splitlines()) == 12


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
def test_a_job_is_named_by_its_model_and_variant(rule, wildcards, expected):
    assert subject_of(rule, wildcards) == expected
    # a model that is not trained is checked
    event = {"rule_name": rule, "wildcards": wildcards, "output": [], "log": []}
    for untrained, words in (((), "train model"), ({"m"}, "check model")):
        known = words if rule == "train_model" else rule.replace("_", " ")
        assert job_of(event, 0.0, untrained).words == known

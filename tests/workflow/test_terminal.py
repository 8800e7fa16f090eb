"""What the terminal shows of real runs of Snakemake, with a pseudo-terminal and without."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from contextlib import suppress

import pytest
from tiny_project import MODEL, Project

DATA = f"artifacts/{MODEL}/data/data.json"
SPLIT = f"artifacts/{MODEL}/splits/evaluation.json"
ESCAPE = "\x1b"
COLOR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")
# a job's line, without escapes: count, seconds, rule in words, model
PREPARED = re.compile(r"^\[1/2\] +\d+(\.\d)? s  prepare data +tiny$", re.MULTILINE)


def on_a_terminal(project: Project, *words: str, columns: int = 80, **variables: str) -> str:
    """What Snakemake prints on a terminal that is so wide."""
    return rest_of(*started_on_a_terminal(project, *words, columns=columns, **variables)).decode()


def started_on_a_terminal(
    project: Project, *words: str, columns: int = 80, **variables: str
) -> tuple[int, subprocess.Popen[bytes]]:
    """The other end of a terminal that is so wide, and Snakemake that has begun on it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    environment = project.environment(TERM="xterm-256color", **variables)
    if "NO_COLOR" not in variables:
        environment.pop("NO_COLOR", None)
    running = subprocess.Popen(
        project.command(*words),
        cwd=project.folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        # where the tests run in the background of a shell, SIGINT is ignored, and so by children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    return ours, running


def rest_of(ours: int, running: subprocess.Popen[bytes]) -> bytes:
    """What is printed until Snakemake has ended."""
    printed = b""
    # so Linux says that the last writer has closed the terminal
    with suppress(OSError):
        while chunk := os.read(ours, 65536):
            printed += chunk
    running.wait(timeout=60)
    os.close(ours)
    return printed


def without_escapes(printed: str) -> str:
    return re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", printed).replace("\r", "\n")


def test_where_the_output_is_no_terminal_each_job_is_one_line_of_plain_text(unrun: Project) -> None:
    done = unrun.snakemake("--", SPLIT)
    assert done.returncode == 0, done.stdout
    assert ESCAPE not in done.stdout
    lines = done.stdout.splitlines()
    assert "2 jobs" in lines
    assert sum(line.startswith("[") for line in lines) == 2
    assert PREPARED.search(done.stdout)
    assert any(re.match(r"2 of 2 jobs in \d", line) for line in lines)
    for word in ("jobid", "resources:", "Select jobs", "Finished", "Building DAG"):
        assert word not in done.stdout
    assert "rule prepare_data:" in unrun.snakemakes_log()


@pytest.mark.parametrize("coloured", [True, False])
def test_on_a_terminal_a_bar_moves_below_the_lines_and_is_gone_at_the_end(unrun, coloured) -> None:
    variables = {} if coloured else {"NO_COLOR": "1"}
    printed = on_a_terminal(unrun, "--", SPLIT, columns=140, **variables)
    text = without_escapes(printed)
    assert re.search(r"^\[2/2\].*split data +tiny/evaluation$", text, re.MULTILINE), text
    assert "0/2 jobs" in text
    assert bool(COLOR.search(printed)) is coloured
    assert printed.rindex("2 of 2 jobs in") > printed.rindex("\x1b[?25h")


def test_what_a_job_writes_past_its_log_is_above_the_bar(unrun: Project) -> None:
    line = "from tightrope.jobs.job"
    unrun.edit("scripts/prepare_data.py", line, f"import nothing_such\n{line}")
    printed = on_a_terminal(unrun, "--", DATA)
    lines = without_escapes(printed).splitlines()
    assert "ModuleNotFoundError: No module named 'nothing_such'" in lines
    assert "               error: returned non-zero exit status 1." in lines
    assert printed.rindex("1 ended with an error") > printed.rindex("\x1b[?25h")


def test_an_interrupted_run_gives_the_terminal_back(unrun: Project) -> None:
    ours, running = started_on_a_terminal(unrun)
    printed = b""
    while b"prepare checkpoint" not in printed:
        printed += os.read(ours, 65536)
    os.killpg(running.pid, signal.SIGINT)
    printed += rest_of(ours, running)
    assert printed.rindex(b"\x1b[?25h") > printed.rindex(b"\x1b[?25l")
    ended = without_escapes(printed[printed.rindex(b"\x1b[?25h") :].decode())
    assert re.fullmatch(
        r"\s*stopped after \d+ of \d+ jobs\s+To continue, run the same command.\s*", ended
    ), ended


def test_a_job_that_ends_with_an_error_gives_its_reason_and_its_log(unrun: Project) -> None:
    with (unrun / "texts.csv").open("a") as stream:
        stream.write("a rare bird,bird\nanother rare bird,bird\n")
    done = unrun.snakemake("--", DATA)
    assert done.returncode == 1
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "log: artifacts/logs/prepare_data/tiny.log" in lines
    (reason,) = [line for line in lines if line.startswith("error: ")]
    assert "no text of class 'bird' is in the calibration split" in reason
    assert any(line.endswith("1 ended with an error: the run is not complete") for line in lines)
    assert any(line.startswith("Snakemake's log: .snakemake/log/") for line in lines)
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize(("word", "expected"), [("--verbose", "Building DAG"), ("--quiet", None)])
def test_options_that_ask_for_snakemakes_own_words_get_them(word, expected, unrun) -> None:
    done = unrun.snakemake(word, "--cores", "1", "--", DATA)
    assert done.returncode == 0, done.stdout
    assert not re.search(r"^\[1/1\]", done.stdout, re.MULTILINE)
    assert "1 of 1 jobs" not in done.stdout
    assert expected is None or expected in done.stdout


def test_a_dry_run_is_a_table_with_the_jobs_of_each_rule_and_why(project: Project) -> None:
    words = ("--dry-run", "--config", "calibration={samples: [16]}")
    lines = project.snakemake(*words).stdout.splitlines()
    head = next(n for n, line in enumerate(lines) if " jobs would run (--verbose: each" in line)
    rows = [re.split(r"  +", line.strip()) for line in lines[head + 1 :]]
    assert int(lines[head].split()[0]) == sum(int(number) for number, *_ in rows)
    assert ("2", "missing output files") in [
        (n, why) for n, rule, *_, why in rows if rule == "calibrate"
    ]
    reasons = {rule: why for _, rule, *_, why in rows}
    assert reasons["summarize"] == "input files updated by another job"
    assert "train model" not in reasons
    told = project.snakemake("--dry-run", "--config", "accuracy_budget_points=2").stdout
    assert "params have changed" in told and "provenance" not in told


def test_nothing_to_be_done_is_one_line_and_imports_no_library_for_terminals(project) -> None:
    done = project.snakemake("--", "reports/summary.html")
    lines = [line for line in done.stdout.splitlines() if "profile" not in line]
    assert lines == ["Nothing to be done (all requested files are present and up to date)."]


def test_a_second_run_tells_its_time_from_the_first_and_ends_with_the_decision(project) -> None:
    done = project.snakemake("--forcerun", "summarize", "--", "reports/summary.html")
    told = r"^2 jobs, about \d+(\.\d)? s, estimated from earlier runs$"
    assert re.search(told, done.stdout, re.MULTILINE), done.stdout
    lines = done.stdout.splitlines()
    (header,) = [number for number, line in enumerate(lines) if line.startswith("shape ")]
    assert lines[header].split() == ["shape", "variant", "ms", "speed-up", "accuracy", "verdict"]
    assert lines[header + 1].split()[0] == "1×8"  # noqa: RUF001 the sign of the report
    assert "Report: reports/summary.html" in lines

import signal
import subprocess
import time
from pathlib import Path

import psutil
from programs import run_in, started
from tightrope.jobs.job import job_from_words

SCRIPT = """
import os, sys
from tightrope.errors import ArtifactError
from tightrope.jobs.job import current_job

job = current_job(globals())
print("printed")
os.write(1, b"native\\n")
print("for the person", file=job.terminal)
if job.params.fail == "expected":
    raise ArtifactError("a.onnx: cut off; run again")
if job.params.fail == "unexpected":
    raise ValueError("bug")
"""


def run_script(repository: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(SCRIPT)
    # an empty value is none: what is printed is buffered, as for most users
    buffered = {"PYTHONPATH": str(repository / "scripts"), "PYTHONUNBUFFERED": ""}
    return run_in(folder, "script.py", f"log.0={folder}/job.log", *words, **buffered)


def test_words_are_read_by_section_and_as_yaml() -> None:
    words = "input.onnx=a=b.onnx output.cache=c.json wildcards.model=tiny log.0=job.log "
    words += "params.samples=512 params.shapes=[1,64] params.recipe=null log.0=job.log"
    job = job_from_words(words.split())
    assert job.input.onnx == "a=b.onnx"
    assert job.output.cache == "c.json"
    assert (job.params.samples, job.params.shapes, job.params.recipe) == (512, [1, 64], None)
    assert job.log == ["job.log"]
    assert job.wildcards.model == "tiny"
    assert dict(job.input.items()) == {"onnx": "a=b.onnx"}
    empty = job_from_words([])
    assert (empty.log, vars(empty.params)) == ([], {})


def test_the_log_takes_what_is_printed_and_the_terminal_what_is_for_people(repository, tmp_path):
    """An expected error is one line in the log, another one keeps its traceback."""
    log = tmp_path / "job.log"
    done = run_script(repository, tmp_path, "params.fail=no")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "for the person\n")
    assert log.read_text() == "printed\nnative\n"
    assert run_script(repository, tmp_path, "params.fail=expected").returncode == 1
    assert log.read_text() == "printed\nnative\nerror: a.onnx: cut off; run again\n"
    assert run_script(repository, tmp_path, "params.fail=unexpected").returncode == 1
    assert "Traceback" in log.read_text() and log.read_text().endswith("ValueError: bug\n")


WORKING = """
import time
from tightrope.jobs.child import Child, Limits
from tightrope.jobs.job import current_job

job = current_job(globals())
with Child(time.sleep, Limits(memory_bytes=64e9, seconds=60)) as child:
    print("at work", flush=True)
    child.ask(60)
"""


def test_sigterm_ends_a_job_and_its_child_and_leaves_no_temporary_files(repository, tmp_path):
    scratch, log = tmp_path / "scratch", tmp_path / "job.log"
    scratch.mkdir()
    (tmp_path / "script.py").write_text(WORKING)
    variables = {"TMPDIR": str(scratch)}
    job = started(repository, "script.py", f"log.0={log}", variables=variables, cwd=tmp_path)
    while not log.is_file() or "at work" not in log.read_text():
        assert job.poll() is None
        time.sleep(0.02)
    (child,) = psutil.Process(job.pid).children()
    assert list(scratch.iterdir())
    job.terminate()
    assert job.wait(10) == 128 + signal.SIGTERM
    assert not child.is_running()
    assert list(scratch.iterdir()) == []
    assert log.read_text() == "at work\n"

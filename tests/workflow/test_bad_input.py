"""A file that cannot be written is one line of error with its path, never a result."""

import subprocess
import sys
from pathlib import Path

import pytest
from mounts import mounted
from tiny_project import MODEL, Project

TIMED = "cpu-openvino-fp32"
# files, and the jobs that make them
WRITERS = {
    f"artifacts/{MODEL}/engines/cpu-openvino-int8-nncf-8/engine.json": (
        f"build_openvino/{MODEL}-cpu-int8-nncf-8"
    ),
    f"reports/{MODEL}/{TIMED}.latency.json": f"measure_latency/{MODEL}-{TIMED}",
}


def error_of(project: Project, target: str, *words: str) -> str:
    """The one line of error in the log of the job that makes `target`, and must fail."""
    job = WRITERS[target]
    rule = job.partition("/")[0]
    done = project.snakemake(*words, "--forcerun", rule, "--allowed-rules", rule, "--", target)
    assert done.returncode != 0, done.stdout
    lines = project.log(job).splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == 1, lines
    assert "Traceback" not in project.log(job)
    assert errors[0] in done.stdout
    return errors[0]


def test_a_python_below_a_folder_with_a_space_is_one_line(unrun: Project, tmp_path: Path) -> None:
    (tmp_path / "my project").symlink_to(sys.prefix)
    python = tmp_path / "my project/bin/python"
    words = [python, *unrun.command()[1:]]
    streams = {"capture_output": True, "text": True}
    done = subprocess.run(words, cwd=unrun.folder, env=unrun.environment(), check=False, **streams)
    assert done.returncode != 0
    *_, line = (done.stdout + done.stderr).splitlines()
    assert line.startswith(f"{python}: Snakemake does not quote the path of Python")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("target", WRITERS)
def test_a_full_disk_is_an_error_with_its_path_and_no_record_of_a_failure(project, target) -> None:
    folder = (project / target).parent
    for file in folder.glob("*.*"):
        file.unlink()
    with mounted(folder, "-o", "size=4k"):
        error = error_of(project, target, "--config", "latency={calls: 1000}")
        assert str(Path(target).parent) in error
        assert "No space left on device" in error
        assert not (project / target).is_file()

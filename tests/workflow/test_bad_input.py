"""A file that cannot be written is one line of error with its path, never a result."""

import shutil
import subprocess
import sys
from pathlib import Path

from mounts import mounted
from tiny_project import MODEL, Project

BUILD = f"build_openvino/{MODEL}-cpu-int8-nncf-8"
ENGINE = f"artifacts/{MODEL}/engines/cpu-openvino-int8-nncf-8/engine.json"


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


def test_a_full_disk_is_an_error_with_its_path_and_no_record_of_a_failure(project) -> None:
    shutil.rmtree((project / ENGINE).parent)
    with mounted((project / ENGINE).parent, "-o", "size=4k"):
        done = project.snakemake("--allowed-rules", BUILD.partition("/")[0], "--", ENGINE)
        assert not (project / ENGINE).is_file()
    assert done.returncode != 0, done.stdout
    log = project.log(BUILD)
    (error,) = [line for line in log.splitlines() if line.startswith("error: ")]
    assert str(Path(ENGINE).parent) in error and "No space left on device" in error
    assert error in done.stdout
    assert "Traceback" not in log

"""What cannot run ends before anything does, with one line that says how to mend it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from tiny_project import CONFIG, MODEL, Project

PROFILE = "Using workflow specific profile"


def one_line(project: Project, *words: str) -> str:
    """The one line of a run that must end before anything is done."""
    before = project.files()
    done = project.snakemake(*words)
    assert done.returncode != 0, done.stdout
    assert project.files() == before
    (line,) = [line for line in done.stdout.splitlines() if not line.startswith(PROFILE)]
    return line


def configure(project: Project, document: dict[str, Any]) -> None:
    (project / "config/config.yaml").write_text(yaml.safe_dump(document))


def test_a_run_a_dry_run_and_lint_refuse_a_wrong_configuration(unrun: Project) -> None:
    configure(unrun, {**CONFIG, "accuracy_budget": 2})
    for words in ((), ("--dry-run",), ("--lint",)):
        assert "accuracy_budget: unknown key" in one_line(unrun, *words)
    configure(unrun, {})
    assert "the configuration is empty" in one_line(unrun)


def test_a_file_that_is_no_yaml_or_not_there_is_named_with_the_line(unrun: Project) -> None:
    (unrun / "own.yaml").write_text("models:\n  a: [\n")
    for words, said in (
        (("--configfile", "config/config.yaml", "own.yaml"), 'in "own.yaml", line 3'),
        (("--configfile=nosuch.yaml",), "--configfile nosuch.yaml: No such file or directory"),
    ):
        assert said in one_line(unrun, *words)
    # what Snakemake takes is taken: JSON with tabs, and a target after one word
    (unrun / "own.json").write_text(json.dumps(CONFIG, indent="\t"))
    words = ("--dry-run", "--quiet", "--configfile=own.json", "reports/summary.html")
    assert unrun.snakemake(*words).returncode == 0
    (unrun / "config/config.yaml").write_text("models: [\n")
    assert 'in "config/config.yaml", line 2' in one_line(unrun)


def test_a_target_of_what_is_not_configured_is_named(unrun: Project) -> None:
    for target, said in (
        ("artifacts/other/bundle/cpu-openvino-fp32.tar.gz", "has no model other; if another run"),
        (f"reports/{MODEL[:-1]}/cpu-openvino-fp32.latency.json", f'did you mean "{MODEL}"?'),
        (f"artifacts/{MODEL}/bundle/cpu-openvino-fp16.tar.gz", "has no variant cpu-openvino-fp16"),
        ("artifacts/other/bundle", "has no model other"),
    ):
        assert said in one_line(unrun, "--", target)


def test_every_error_is_told_for_command_line_values_too(unrun: Project) -> None:
    line = one_line(unrun, "--config", "calibration={samples: [8, 64], pool: 32}")
    assert "calibration.samples = 64: more than calibration.pool = 32" in line


def test_jobs_of_several_hosts_do_not_run_on_this_machine(unrun: Project) -> None:
    """What each host adds: tests/unit/plan/test_hosts.py."""
    hosts = {"genoa": {"constraint": "zen4", "isa": ["avx2"]}, "rome": {"constraint": "zen2"}}
    configure(unrun, {**CONFIG, "devices": "auto", "hosts": hosts})
    assert one_line(unrun).startswith("config: hosts = genoa, rome: kinds of nodes")


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

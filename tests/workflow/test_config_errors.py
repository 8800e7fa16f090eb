"""A wrong configuration ends before anything runs, with one line that says how to mend it."""

import json
from contextlib import chdir
from copy import deepcopy
from typing import Any

import pytest
import yaml
from tightrope.errors import ConfigError
from tightrope.plan.config import checked
from tiny_project import CONFIG, MODEL, Project

PROFILE = "Using workflow specific profile"


def changed(path: str, value: Any) -> dict[str, Any]:
    """The tiny configuration with `value` at the dotted `path`."""
    document: Any = deepcopy(CONFIG)
    *parents, last = path.split(".")
    place = document
    for name in parents:
        place = place[name]
    place[last] = value
    return document


# what only files of a folder or names of repairs can show; the rest: tests/unit/plan/test_config.py
WRONG_VALUES = [
    ("calibration.methods", ["minmx"], ["methods (entry 1) = 'minmx'", "minmax, entropy,"]),
    ("repairs", {"auto": {}}, ["repairs = 'auto'", "a word of at most 50 small letters"]),
    ("repairs", {"smooth": {"smothquant": 0.5}}, ["repairs.smooth.smothquant", '"smoothquant"']),
    (f"models.{MODEL}.checkpoint", "path:config", ["path:config", "has no config.json"]),
    (f"models.{MODEL}.checkpoint", "hub:owner/name", ["hub:owner/name", "@revision"]),
]


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


def refusal(project: Project, document: dict[str, Any]) -> str:
    """The line that refuses a configuration in the project's folder."""
    with chdir(project.folder), pytest.raises(ConfigError) as caught:
        checked(document, "config/schema.yaml")
    return str(caught.value)


@pytest.mark.parametrize(("key", "value", "said"), WRONG_VALUES)
def test_a_wrong_value_is_named_with_what_is_allowed(
    fresh: Project, key: str, value: Any, said: list[str]
) -> None:
    line = refusal(fresh, changed(key, value))
    assert "\n" not in line
    for words in said:
        assert words in line


def test_a_checkpoint_with_another_head_is_refused_before_anything_runs(unrun: Project) -> None:
    folder = unrun / "tokens"
    folder.mkdir()
    (folder / "config.json").write_text('{"architectures": ["BertForTokenClassification"]}')
    (folder / "model.safetensors").touch()
    document = changed(f"models.{MODEL}.checkpoint", "path:tokens")
    document["models"][MODEL]["train"] = None
    line = refusal(unrun, document)
    assert "path:tokens: BertForTokenClassification classifies each token; only models" in line


def test_a_run_a_dry_run_and_lint_refuse_a_wrong_configuration(unrun: Project) -> None:
    configure(unrun, changed("accuracy_budget", 2))
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

"""A wrong configuration ends before anything runs, with one line that says how to mend it."""

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


WRONG_VALUES = [
    ("accuracy_budget", 2, ["unknown key", 'did you mean "accuracy_budget_points"?']),
    ("calibration.sample", [8], ["unknown key", 'did you mean "samples"?']),
    ("engines.openvno", ["fp32"], ["unknown key", 'did you mean "openvino"?']),
    (f"models.{MODEL}.checkpont", "scratch:bert", ["unknown", 'did you mean "checkpoint"?']),
    (f"models.{MODEL}.train.epoch", 1, ["unknown key", 'did you mean "epochs"?']),
    ("shapes", [{"batch": 1, "sequence": 64}], ["sequence = 64", MODEL, "at most 32 tokens"]),
    ("threads", "two", ["threads = 'two'", "'auto' or integer"]),
    ("shapes", [{"batch": 0, "sequence": 8}], ["shapes (entry 1).batch = 0", "minimum of 1"]),
    ("shapes", [{"batch": 1}], ["shapes (entry 1)", "besides batch a shape has sequence"]),
    (
        "calibration.methods",
        ["minmx"],
        ["methods (entry 1) = 'minmx'", "minmax, entropy,", '"minmax"'],
    ),
    ("calibration.samples", [64], ["calibration.samples = 64", "calibration.pool = 32"]),
    ("repairs", {"auto": {}}, ["repairs = 'auto'", "a word of at most 50 small letters"]),
    ("repairs", {"two-words": {}}, ["repairs = 'two-words'", "a word of at most 50 small letters"]),
    ("repairs", {"smooth": {"smothquant": 0.5}}, ["repairs.smooth.smothquant", '"smoothquant"']),
    ("repairs", {"smooth": {"smoothquant": 2}}, ["repairs.smooth.smoothquant = 2", "maximum of 1"]),
    ("engines", {"tensorrt": ["fp16"]}, ["tensorrt: fp16", "cpu"]),
    (f"models.{MODEL}.train.epochs", "many", ["train.epochs = 'many'", "must be number"]),
    (f"models.{MODEL}.data", "files:none/*.csv", [f"models.{MODEL}.data", "none/*.csv", "no file"]),
    (f"models.{MODEL}.data", "file:texts.csv", [f"models.{MODEL}.data", "files:pattern"]),
    (f"models.{MODEL}.checkpoint", "path:none", ["checkpoint = path:none", "no such folder"]),
    (f"models.{MODEL}.checkpoint", "path:config", ["path:config", "has no config.json"]),
    (f"models.{MODEL}.checkpoint", "path:texts.csv", ["path:texts.csv: is a file; name the"]),
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


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            "texts,label\na cat,cat\n",
            'text = text: texts.csv has no such column; did you mean "texts"?',
        ),
        ("text\na cat\n", "columns.label = label: texts.csv has no such column; it has text"),
        ("text,label\na cat,cat\n,dog\n", "'text' is blank in 1 of 2 rows, first in row 2"),
        ("text,label\na cat,cat\na dog,\n", "'label' is blank in 1 of 2 rows, first in row 2"),
        ("text,label\n1,cat\n2,dog\n", "column 'text' holds numbers only"),
        ("text,label\na,cat\nb,cat\nc,dog\n", "label 'dog' has one example, which cannot be in"),
    ],
)
def test_a_table_that_cannot_be_used_is_named_before_anything_runs(
    unrun: Project, table: str, said: str
) -> None:
    (unrun / "texts.csv").write_text(table)
    assert said in refusal(unrun, CONFIG)


def test_a_shape_longer_than_the_model_takes_is_refused_before_anything_runs(
    unrun: Project,
) -> None:
    folder = unrun / "small"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert", "max_position_embeddings": 32}')
    (folder / "model.safetensors").write_bytes(b"weights")
    document = changed("shapes", [{"batch": 1, "sequence": 64}])
    document["models"][MODEL]["checkpoint"] = "path:small"
    line = refusal(unrun, document)
    for words in ("sequence = 64", MODEL, "at most 32 tokens"):
        assert words in line


def test_a_run_a_dry_run_and_lint_refuse_a_wrong_configuration(unrun: Project) -> None:
    configure(unrun, changed("accuracy_budget", 2))
    for words in ((), ("--dry-run",), ("--lint",)):
        assert "accuracy_budget: unknown key" in one_line(unrun, *words)
    configure(unrun, {})
    assert "the configuration is empty" in one_line(unrun)


def test_what_is_no_yaml_ends_before_anything_runs(unrun: Project) -> None:
    # Snakemake reads this file before it reads the Snakefile: the words are its own
    (unrun / "config/config.yaml").write_text("models: [\n")
    before = unrun.files()
    done = unrun.snakemake()
    assert done.returncode != 0
    assert "Config file is not valid JSON or YAML" in done.stdout
    assert "Traceback" not in done.stdout
    assert unrun.files() == before


def test_every_error_is_told_for_command_line_values_too(unrun: Project) -> None:
    line = one_line(unrun, "--config", "calibration={samples: [8, 64], pool: 32}")
    assert "calibration.samples = 64: more than calibration.pool = 32" in line

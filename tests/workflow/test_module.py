"""The workflow as a module of another one, below a prefix: complete, and its importer untouched."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from tiny_project import CONFIG, MODEL, ONNX_MODELS, OWN_ONNX, Project

ENGINES = {"onnxruntime": ["fp32"]}
SNAKEFILE = """
configfile: "importer.yaml"


module tightrope:
    snakefile:
        "{project}/Snakefile"
    prefix:
        "sub"
    config:
        config["tightrope"]


use rule * from tightrope as tightrope_*


rule all:
    default_target: True
    input:
        "conclusion.txt",


rule conclude:
    input:
        "sub/reports/summary.json",
        "sub/reports/summary.html",
    output:
        "conclusion.txt",
    shell:
        "cp {{input[0]}} {{output}}"
"""
# of the importer, where a run of its own would have such files
ITS_FILES = (
    "reports/summary.json",
    "reports/summary.html",
    f"reports/{MODEL}/cpu-onnxruntime-fp32.latency.json",
    f"artifacts/{MODEL}/model.onnx",
    f"artifacts/{MODEL}/checkpoint/checkpoint.json",
    "artifacts/hosts/node.json",
)
SETTINGS = ("--rerun-triggers", "mtime", "params", "input")


@pytest.fixture
def importer(fresh: Project, finished_onnx: Project, tmp_path: Path) -> Project:
    """A workflow in a folder of its own that imports this one from another folder."""
    installed = fresh.copy(tmp_path / "installed")
    folder = tmp_path / "importer"
    folder.mkdir()
    for name in ("texts.csv", str(Path(OWN_ONNX).parent)):
        given = finished_onnx / name
        (shutil.copytree if given.is_dir() else shutil.copy2)(given, folder / name)
    (folder / "Snakefile").write_text(SNAKEFILE.format(project=installed.folder))
    config = {**CONFIG, "models": ONNX_MODELS, "engines": ENGINES, "retry_failed": True}
    config = {"mine": 1, "tightrope": {**config, "host": "node"}}
    (folder / "importer.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    for name in ITS_FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        # what a run with retry_failed deletes, were it one of its own
        (folder / name).write_text(json.dumps({"status": "failed", "reason": "of the importer"}))
    return Project(folder)


def outside(project: Project) -> dict[str, bytes]:
    """All files of the importer that are not below the prefix, with their content."""
    paths = (path for path in project.files() if not path.startswith("sub/"))
    return {path: (project / path).read_bytes() for path in paths}


def test_a_module_runs_to_its_report_and_leaves_its_importer_alone(importer: Project) -> None:
    before = outside(importer)
    done = importer.snakemake(*SETTINGS)
    assert done.returncode == 0, done.stdout
    summary = importer.read("conclusion.txt")
    assert [one["status"] for one in summary["results"]] == ["ok"]
    assert (importer / "sub/reports/summary.html").is_file()
    left = outside(importer)
    assert left.pop("conclusion.txt")
    assert left == before
    assert "Nothing to be done" in importer.snakemake(*SETTINGS).stdout


def test_a_lock_of_the_importer_keeps_the_module_away(importer: Project) -> None:
    """A run of its own would remove it as that of a killed run."""
    lock = importer / ".snakemake/locks/0.output.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(f"{importer / 'conclusion.txt'}\nconclusion.txt\n")
    before = outside(importer)
    done = importer.snakemake(*SETTINGS)
    assert done.returncode != 0
    assert "Directory cannot be locked" in done.stdout
    assert lock.is_file()
    assert outside(importer) == before
    assert not (importer / "sub").exists()


def test_the_importer_may_run_without_the_module_while_it_is_imported(importer: Project) -> None:
    done = importer.snakemake("--list-rules")
    assert done.returncode == 0, done.stdout
    assert {"conclude", "tightrope_summarize"} <= {*done.stdout.split()}
    assert not (importer / "sub").exists()

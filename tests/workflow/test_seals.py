"""What no run of this folder has written is refused in one line, and never run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tightrope.artifacts.files import sha256, write_json
from tiny_project import MODEL, Project

ENGINE = "cpu-openvino-fp32"
MANIFEST = f"artifacts/{MODEL}/engines/{ENGINE}/engine.json"
LATENCY = f"reports/{MODEL}/{ENGINE}.latency.json"
ACCURACY = f"reports/{MODEL}/{ENGINE}.accuracy.json"


@pytest.fixture
def project(onnx_project: Project) -> Project:
    return onnx_project


def refusal(path: str) -> str:
    """The line for a file that no run here has written."""
    return (
        f"error: {path}: changed since a run here wrote it, or brought from elsewhere; delete it "
        "and run again, or trust all files here: python tools/reseal.py"
    )


def swap_engine(project: Project) -> None:
    """Replace a file of the engine by another program, with a manifest that fits it."""
    manifest = project / MANIFEST
    document = json.loads(manifest.read_text())
    program = manifest.parent / next(name for name in document["files"] if name.endswith(".xml"))
    program.write_text(program.read_text().replace("<net ", "<net  ", 1))
    facts = {"sha256": sha256(program), "size_bytes": program.stat().st_size}
    write_json(manifest, {**document, "files": {**document["files"], program.name: facts}})


def reseal(project: Project) -> str:
    words = [sys.executable, "tools/reseal.py"]
    return subprocess.check_output(words, cwd=project.folder, text=True)


@pytest.mark.parametrize(
    "words", [(), ("--allowed-rules", "summarize", "--", "reports/summary.json")]
)
def test_a_changed_record_reaches_no_report(project: Project, words: tuple[str, ...]) -> None:
    before = (project / "reports/summary.json").read_bytes()
    record = json.loads((project / LATENCY).read_text())
    record["shapes"][0]["reference_s"] = 1e-9
    write_json(project / LATENCY, record)
    done = project.snakemake(*words)
    assert done.returncode != 0
    assert refusal(LATENCY) in done.stdout
    assert "Traceback" not in done.stdout
    assert (project / "reports/summary.json").read_bytes() == before


def test_a_swapped_engine_with_a_manifest_that_fits_is_not_run(project: Project) -> None:
    (project / ACCURACY).unlink()
    swap_engine(project)
    words = ("--allowed-rules", "measure_accuracy", "--", ACCURACY)
    done = project.snakemake(*words)
    assert done.returncode != 0
    assert done.stdout.count(refusal(MANIFEST)) == 1, done.stdout
    assert not (project / ACCURACY).exists()
    # its user may trust it all the same
    assert reseal(project).endswith(" files of artifacts and reports count as written here\n")
    project.run(*words)


def test_an_onnx_file_of_another_making_is_built_into_nothing(project: Project) -> None:
    quantized = f"artifacts/{MODEL}/quantized/u8s8-minmax-8.onnx"
    target = f"artifacts/{MODEL}/engines/cpu-onnxruntime-int8-minmax-8/engine.json"
    # a whole file of the same model
    (project / quantized).write_bytes((project / f"artifacts/{MODEL}/model.onnx").read_bytes())
    done = project.snakemake("--allowed-rules", "build_onnxruntime", "--", target)
    assert done.stdout.count(refusal(quantized)) == 1, done.stdout


def test_files_of_a_folder_without_its_state_are_refused_until_they_are_trusted(
    project: Project, tmp_path: Path
) -> None:
    (project / ".snakemake").rename(tmp_path / "state")
    again = ("--forcerun", "summarize", "--rerun-triggers", "mtime")
    done = project.snakemake(*again)
    assert done.returncode != 0
    assert "python tools/reseal.py" in done.stdout
    reseal(project)
    assert "summarize/summarize" in project.run(
        "--forcerun", "summarize", "--rerun-triggers", "mtime"
    )

"""The rules of bundles: what they make, and of what they are made again."""

from pathlib import Path

from bundles import unpack
from programs import run_in
from tiny_project import MODEL, SUMMARY, VARIANTS, Project

QUANTIZED = VARIANTS[1]
BUNDLE = f"artifacts/{MODEL}/bundle/{QUANTIZED}.tar.gz"
TRITON = f"artifacts/{MODEL}/bundle/{QUANTIZED}.triton.tar.gz"
JOBS = {f"bundle/{MODEL}-{QUANTIZED}", f"bundle_triton/{MODEL}-{QUANTIZED}"}
PROGRAMS = "scripts/tightrope/bundle/programs"


def append(path: Path) -> None:
    path.write_text(path.read_text() + "\nCHANGED = True\n")


def test_a_bundle_is_made_by_its_name_and_again_of_what_it_holds(project, tmp_path) -> None:
    assert project.run(BUNDLE, TRITON) == JOBS
    assert project.plan(BUNDLE, TRITON) == set()
    folder = unpack(project / BUNDLE, tmp_path / "plain")
    done = run_in(folder, "verify.py")
    assert done.returncode == 0, done.stderr
    assert "answers    40 of 40 as on record" in done.stdout
    served = unpack(project / TRITON, tmp_path / "triton")
    assert (served / MODEL / "config.pbtxt").is_file()
    assert (served / MODEL / "1/model.onnx").read_bytes() == (
        project / f"artifacts/{MODEL}/engines/{QUANTIZED}/model.onnx"
    ).read_bytes()

    append(project / PROGRAMS / "engines/openvino.py")
    assert project.plan(BUNDLE, TRITON) == set(), "the program of another engine"
    append(project / PROGRAMS / "engines/onnxruntime.py")
    assert project.plan(BUNDLE, TRITON) == {f"bundle/{MODEL}-{QUANTIZED}"}
    project.run(BUNDLE)
    project.edit("scripts/tightrope/bundle/facts.py", '"not stated"', '"nobody says"')
    assert project.plan(BUNDLE, TRITON) == {f"bundle/{MODEL}-{QUANTIZED}"}


def test_the_bundles_of_what_is_recommended(project: Project) -> None:
    tool = "tools/recommended.py"
    done = run_in(project.folder, tool)
    summary = project.read(SUMMARY)
    chosen = {one["variant"] for one in summary["recommendations"]} - {None}
    assert {*done.stdout.split()} == {f"artifacts/{MODEL}/bundle/{one}.tar.gz" for one in chosen}
    nothing = [{**one, "variant": None} for one in summary["recommendations"]]
    project.rewrite(SUMMARY, {**summary, "recommendations": nothing})
    done = run_in(project.folder, tool)
    assert done.returncode == 1
    assert done.stderr == "reports/summary.json: no variant is recommended; the report says why\n"
    (project / SUMMARY).unlink()
    done = run_in(project.folder, tool)
    assert done.stderr == f"{SUMMARY}: cannot be read (No such file or directory)\n"

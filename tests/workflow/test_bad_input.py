"""A truncated, tampered or unwritable file is one line of error with its path, never a result."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tightrope.errors import ArtifactError
from tightrope.onnx.file import load_onnx
from tiny_project import CONFIG, MODEL, Project

FOLDER = f"artifacts/{MODEL}"
INT8 = "cpu-onnxruntime-int8-minmax-8"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 1
    path.write_bytes(content)


# a file, a target whose job reads it, and what befalls it; test_changed_artifacts.py has each kind
CALIBRATION = f"{FOLDER}/calibration/minmax-8.json"
DAMAGED = [
    (CALIBRATION, f"{FOLDER}/quantized/u8s8-minmax-8.onnx", flip_a_bit),
    (f"{FOLDER}/engines/{INT8}/model.onnx", f"reports/{MODEL}/{INT8}.accuracy.json", truncate),
]


def job_of(target: str) -> str:
    """The job that makes the file."""
    path = Path(target)
    if target.endswith("engine.json"):
        device, engine, rest = path.parent.name.split("-", 2)
        return f"build_{engine}/{MODEL}-{device}-{rest}"
    if target.startswith("reports"):
        variant, kind, _ = path.name.split(".")
        return f"measure_{kind}/{MODEL}-{variant}"
    if "quantized" in target:
        return f"quantize_onnx/{MODEL}-{path.stem}"
    return f"simplify_onnx/{MODEL}"


def error_of(project: Project, target: str, *words: str) -> str:
    """The one line of error in the log of the job that makes `target`, and must fail."""
    job = job_of(target)
    rule = job.partition("/")[0]
    done = project.snakemake(*words, "--forcerun", rule, "--allowed-rules", rule, "--", target)
    assert done.returncode != 0, done.stdout
    lines = project.log(job).splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == 1, lines
    assert "Traceback" not in project.log(job)
    assert errors[0] in done.stdout
    return errors[0]


@pytest.mark.parametrize(("damaged", "target", "damage"), DAMAGED)
def test_a_damaged_artifact_is_named_by_the_job_that_reads_it(
    project: Project, damaged: str, target: str, damage: Callable[[Path], None]
) -> None:
    damage(project / damaged)
    assert damaged in error_of(project, target)
    assert not (project / target).is_file()


def test_no_bit_of_an_onnx_file_can_be_flipped_unseen(finished: Project, tmp_path: Path) -> None:
    content = (finished / f"{FOLDER}/model.simplified.onnx").read_bytes()
    damaged = tmp_path / "damaged.onnx"
    unseen = []
    for position in range(0, len(content), max(1, len(content) // 500)):
        changed = bytearray(content)
        changed[position] ^= 1 << position % 8
        damaged.write_bytes(changed)
        try:
            load_onnx(damaged)
        except ArtifactError:
            continue
        unseen.append(position)
    assert unseen == []


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """A file system of its own at `folder`; skips where this process may not mount."""
    folder.mkdir(parents=True, exist_ok=True)
    words = ["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting takes root: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


WRITERS = [
    f"{FOLDER}/quantized/u8s8-minmax-8.onnx",
    f"{FOLDER}/engines/cpu-openvino-int8-nncf-8/engine.json",
    f"reports/{MODEL}/{INT8}.latency.json",
]


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small file system takes root")
@pytest.mark.parametrize("target", WRITERS)
def test_a_full_disk_is_an_error_with_its_path_and_no_record_of_a_failure(
    project: Project, target: str
) -> None:
    folder = (project / target).parent
    for file in folder.glob("*.*"):
        file.unlink()
    with mounted(folder, "-o", "size=4k"):
        error = error_of(project, target, "--config", "latency={calls: 1000}")
        assert str(Path(target).parent) in error
        assert "No space left on device" in error
        assert not (project / target).is_file()


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a file system read-only takes root")
def test_a_read_only_folder_is_an_error_with_its_path_and_no_record_of_a_failure(
    project: Project,
) -> None:
    target = WRITERS[-1]
    folder = (project / target).parent
    for file in folder.glob("*.*"):
        file.unlink()
    rule = job_of(target).partition("/")[0]
    with mounted(folder, "-o", "ro"):
        # Snakemake removes the old output before the job begins: the words are its own
        done = project.snakemake("--forcerun", rule, "--allowed-rules", rule, "--", target)
        assert done.returncode != 0
        assert f"Read-only file system: '{target}'" in done.stdout
        assert not (project / target).is_file()


def test_a_class_without_a_calibration_example_is_named_by_prepare_data(unrun: Project) -> None:
    with (unrun / "texts.csv").open("a") as stream:
        stream.write("a rare bird,bird\nanother rare bird,bird\n")
    # one is for training, none among the first ones, which are for calibration
    splits = {"train": 130, "evaluation": 40}
    unrun.configure(models={MODEL: {**CONFIG["models"][MODEL], "splits": splits}})
    error = error_of_prepare_data(unrun)
    assert error.startswith("error: files:texts.csv: no text of class 'bird' is in the calibration")


def error_of_prepare_data(project: Project) -> str:
    """The one line in the log of a prepare_data that must fail."""
    done = project.snakemake("--", f"{FOLDER}/data/data.json")
    assert done.returncode != 0
    (error,) = [line for line in project.log(f"prepare_data/{MODEL}").splitlines() if line]
    assert error in done.stdout
    return error

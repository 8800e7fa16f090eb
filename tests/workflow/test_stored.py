"""Runs without a shared file system: jobs on nodes of their own, all that they make in storage."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from apart import PACKAGES, apart, s3_server, words_for
from artifact_files import written
from bundles import unpack
from programs import run_in
from tiny_project import ONNX_MODELS, SUMMARY, Project, write_own_onnx

SETTINGS: dict[str, Any] = {"engines": {"onnxruntime": ["int8"]}, "graphs": []}
LATENCY = "reports/tiny/cpu-onnxruntime-int8-minmax-8.latency.json"
ACCURACY = "reports/tiny/cpu-onnxruntime-int8-minmax-8.accuracy.json"
BUILD = "run_build(current_job(globals()))"
# on a node, as if there were not enough memory
CRASH = """
import os
job = current_job(globals())
if os.environ.get("CRASH", "none") in job.output.manifest and os.path.exists("job.sh"):
    os._exit(1)
run_build(job)
"""

# a client of the storage, in a Python that has its packages
STORE = """
import json, os, sys
import boto3
name = "SNAKEMAKE_STORAGE_S3_"
keys = {"aws_access_key_id": "ACCESS_KEY", "aws_secret_access_key": "SECRET_KEY"}
keys = {key: os.environ[name + value] for key, value in keys.items()}
store = boto3.client("s3", endpoint_url=os.environ[name + "ENDPOINT_URL"], region_name="x", **keys)
"""
# fields of a record in storage get other values
EDIT = f"""{STORE}
key, fields = sys.argv[1:]
record = json.load(store.get_object(Bucket="tests", Key=key)["Body"])
record = json.dumps({{**record, **json.loads(fields)}}).encode()
store.put_object(Bucket="tests", Key=key, Body=record)
"""
DELETE = f"""{STORE}
store.delete_object(Bucket="tests", Key=sys.argv[1])
"""
FETCH = f"""{STORE}
store.download_file("tests", *sys.argv[1:])
"""
PUT = f"""{STORE}
key, file = sys.argv[1:]
store.upload_file(file, "tests", key)
"""


class Stored(NamedTuple):
    """A project whose files are in storage, and how Snakemake is called for it."""

    project: Project
    words: list[str]
    variables: dict[str, str]

    def snakemake(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return apart(self.project, *self.words, *words, **self.variables, **variables)

    def plan(self, *words: str) -> set[str]:
        """The jobs that would be run."""
        done = self.snakemake("--dry-run", "--verbose", *words)
        assert done.returncode == 0, done.stdout
        return {line.split()[1].rstrip(":") for line in done.stdout.splitlines() if is_rule(line)}

    def in_storage(self, program: str, *words: str) -> None:
        """Run a program that uses the storage."""
        environment = {**os.environ, "PYTHONPATH": str(PACKAGES), **self.variables}
        subprocess.run([sys.executable, "-c", program, *words], env=environment, check=True)

    def summary(self) -> Any:
        return self.project.read(SUMMARY)


def is_rule(line: str) -> bool:
    return line.startswith(("rule ", "localrule "))


def results(summary: Any) -> dict[str, Any]:
    """What is the same whenever and wherever it was measured."""
    kept = ("status", "reason", "accuracy", "executed")
    return {one["variant"]: {key: one.get(key) for key in kept} for one in summary["results"]}


@pytest.fixture(scope="module")
def on_s3(
    fresh: Project, finished: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stored]:
    """The tiny project of an ONNX file after one whole run with its files in S3."""
    folder = tmp_path_factory.mktemp("stored")
    project = Project(fresh.copy(folder / "project").folder, ONNX_MODELS)
    write_own_onnx(project, finished)
    project.configure(**SETTINGS)
    project.edit("scripts/build_engine.py", BUILD, CRASH)
    with s3_server(folder) as variables:
        stored = Stored(project, words_for(folder, "s3", "s3://tests/tiny"), variables)
        done = stored.snakemake()
        assert done.returncode == 0, done.stdout
        yield stored


def test_a_run_on_nodes_of_their_own_ends_in_the_report_of_one_machine(on_s3, finished_onnx):
    found = on_s3.summary()
    local = finished_onnx.read(SUMMARY)
    assert results(found)
    assert results(found).items() <= results(local).items()
    assert found["models"] == local["models"]
    assert (on_s3.project / "reports/summary.html").stat().st_size > 1e5
    assert not list((on_s3.project / "artifacts").rglob("*.onnx"))


def test_a_change_makes_only_what_is_stale(on_s3: Stored) -> None:
    assert on_s3.plan() == set()
    calibrated = on_s3.plan("--config", "calibration={samples: [16]}")
    assert {"calibrate", "quantize_onnx", "build_onnxruntime", "measure_latency"} <= calibrated
    assert not {"prepare_data", "train_model", "export_onnx", "simplify_onnx"} & calibrated


def test_a_bundle_is_made_in_storage(on_s3: Stored, tmp_path: Path) -> None:
    bundle = "artifacts/tiny/bundle/cpu-onnxruntime-int8-minmax-8.tar.gz"
    done = on_s3.snakemake(bundle)
    assert done.returncode == 0, done.stdout
    on_s3.in_storage(FETCH, f"tiny/{bundle}", str(tmp_path / "bundle.tar.gz"))
    verified = run_in(unpack(tmp_path / "bundle.tar.gz", tmp_path), "verify.py")
    assert verified.returncode == 0, verified.stderr
    assert "answers    40 of 40 as on record" in verified.stdout


def test_what_was_changed_in_storage_reaches_no_report(on_s3: Stored) -> None:
    before = (on_s3.project / SUMMARY).read_bytes()
    on_s3.in_storage(EDIT, f"tiny/{ACCURACY}", '{"classes": 2}')
    done = on_s3.snakemake()
    assert done.returncode != 0
    assert f"s3/tests/tiny/{ACCURACY}: without a digest of its content" in done.stdout
    assert "Traceback" not in done.stdout
    assert (on_s3.project / SUMMARY).read_bytes() == before
    # that is the way on
    on_s3.in_storage(DELETE, f"tiny/{ACCURACY}")
    assert "measure_accuracy" in on_s3.plan()


def test_a_job_that_dies_is_in_the_report_and_made_again(on_s3: Stored, tmp_path) -> None:
    changed = ("--config", "calibration={samples: [16]}")
    done = on_s3.snakemake(*changed, CRASH="cpu-onnxruntime-int8-minmax-16")
    found = results(on_s3.summary())
    assert "cpu-onnxruntime-int8-minmax-16" in found, done.stdout
    dead = found.pop("cpu-onnxruntime-int8-minmax-16")
    assert dead["status"] == "failed"
    assert "of the scheduler failed" in dead["reason"]
    # a failed record in storage is told when its job ends
    assert re.search(
        r"measure latency +tiny/cpu-onnxruntime-int8-minmax-16\n +failed: ", done.stdout
    )
    assert {one["status"] for one in found.values()} == {"ok"}

    baseline = ACCURACY.replace("int8-minmax-8", "fp32")
    on_s3.in_storage(EDIT, f"tiny/{baseline}", '{"status": "failed", "reason": "planted"}')
    latency, file = LATENCY.replace("int8-minmax-8", "fp32"), tmp_path / "record.json"
    on_s3.in_storage(FETCH, f"tiny/{latency}", str(file))
    record = json.loads(file.read_text())
    # as if the hypervisor had taken the processor in each pair of blocks
    for pair in [pair for shape in record["shapes"] for pair in shape["pairs"]]:
        pair["stolen"] = 1.0
    on_s3.in_storage(PUT, f"tiny/{latency}", str(written(file, record)))
    done = on_s3.snakemake(*changed, "retry_failed=true", "remeasure=disturbed")
    assert done.returncode == 0, done.stdout
    assert "build onnxruntime" in done.stdout
    # others of the run may have been disturbed indeed
    for kind in ("accuracy", "latency"):
        assert re.search(rf"measure {kind} +tiny/cpu-onnxruntime-fp32\n", done.stdout)
    assert {one["status"] for one in results(on_s3.summary()).values()} == {"ok"}

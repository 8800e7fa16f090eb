"""The profile for Kubernetes: what it asks of a cluster, and a job that runs from its manifest."""

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from apart import PACKAGES, SECRET, apart, s3_server
from kubernetes_api import kubernetes_api
from tiny_project import ONNX_MODELS, Project, adapted, write_own_onnx

PROFILE = "profiles/kubernetes"
VALUES = {
    "host": "small-node",
    "machine_type": "m7i.large",
    "cores": "2",
    "node_mb": "7000",
    "bucket": "s3://tests/kubernetes",
    "image": "registry.example/tightrope:1",
    "namespace": "tests",
}
# of a process with the packages for storage
VALIDATE = """
import json, sys
import kubernetes_validate
kubernetes_validate.validate(json.load(sys.stdin), "1.33", strict=True)
"""


@pytest.fixture
def project(fresh: Project, finished: Project, tmp_path: Path) -> Project:
    """The tiny project of an ONNX file in a repository: Snakemake takes the sources from there."""
    made = Project(fresh.copy(tmp_path / "project").folder, ONNX_MODELS)
    write_own_onnx(made, finished)
    made.configure(engines={"onnxruntime": ["fp32"]}, graphs=[])
    profile = made / PROFILE / "config.yaml"
    profile.write_text(adapted(profile.read_text(), VALUES))
    for words in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *words], cwd=made.folder, check=True)
    return made


def test_a_job_runs_from_a_manifest_that_the_schema_of_kubernetes_allows(project, tmp_path) -> None:
    with s3_server(tmp_path) as storage, kubernetes_api(tmp_path, str(PACKAGES)) as cluster:
        words = ("--profile", PROFILE, "--until", "train_model")
        quick = ("--seconds-between-status-checks", "1")
        done = apart(project, *words, *quick, KUBECONFIG=str(tmp_path / "kubeconfig"), **storage)
    logs = "\n".join(path.read_text() for path in cluster.folder.glob("*.log"))
    assert done.returncode == 0, done.stdout + logs
    # the others of them run where Snakemake does
    (manifest,) = cluster.manifests
    assert_valid(manifest)
    pod = manifest["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": "m7i.large"}
    assert container["image"] == VALUES["image"]
    asked = container["resources"]
    assert asked["requests"]["cpu"] == asked["limits"]["cpu"] == "2000m"
    assert asked["requests"]["memory"] == asked["limits"]["memory"] == "7000M"
    assert asked["requests"]["nvidia.com/gpu"] == "0"
    assert "s3://tests/kubernetes" in json.dumps(container["args"])
    assert SECRET not in json.dumps(manifest), "a secret in the open"
    (given,) = cluster.secrets.values()
    assert SECRET in {base64.b64decode(value).decode() for value in given.values()}


def assert_valid(manifest: dict[str, Any]) -> None:
    """The schema of Kubernetes allows the manifest, and nothing in it is unknown there."""
    named = {"apiVersion": "batch/v1", "kind": "Job", **manifest}
    done = subprocess.run(
        [sys.executable, "-c", VALIDATE],
        input=json.dumps(named),
        env={"PYTHONPATH": str(PACKAGES)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

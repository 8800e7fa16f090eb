"""Several kinds of nodes in one DAG: what each adds to it, and where it cannot run."""

from tiny_project import MODEL, Project

GENOA = {"constraint": "zen4", "isa": ["avx2", "avx512f", "avx512_vnni"]}
ROME = {"constraint": "zen2", "isa": ["avx2"]}
# int8 follows the instructions of each host
SETTINGS = {
    "devices": "auto",
    "engines": {"onnxruntime": ["int8"]},
    "calibration": {"methods": ["minmax"], "samples": [8], "pool": 32},
}


def planned(project: Project, **hosts: object) -> set[str]:
    project.configure(**SETTINGS, hosts=hosts)
    return project.plan()


def test_another_host_adds_its_own_jobs_and_the_int8_that_its_cpu_needs(unrun: Project) -> None:
    one, both = planned(unrun, genoa=GENOA), planned(unrun, genoa=GENOA, rome=ROME)
    added = {name.replace("genoa", "rome") for name in one if "@genoa" in name}
    assert len(added) == 7
    quantized = f"quantize_onnx/{MODEL}-u8s7-minmax-8"
    assert both - one == {*added, quantized, f"describe_graph/{MODEL}-u8s7-minmax-8"}
    assert not one - both
    # data, checkpoint, ONNX and calibration are those of all hosts
    assert f"calibrate/{MODEL}-minmax-8" in one


def test_jobs_of_several_hosts_do_not_run_on_this_machine(unrun: Project) -> None:
    unrun.configure(**SETTINGS, hosts={"genoa": GENOA, "rome": ROME})
    refused = unrun.snakemake()
    assert refused.returncode != 0
    assert refused.stdout.splitlines()[-1].startswith("config: hosts = genoa, rome: kinds of nodes")
    assert not (unrun / "artifacts").exists()

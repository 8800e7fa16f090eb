"""Several kinds of nodes cannot run here; what each adds: tests/unit/plan/test_hosts.py."""

from tiny_project import Project

HOSTS = {"genoa": {"constraint": "zen4", "isa": ["avx2"]}, "rome": {"constraint": "zen2"}}


def test_jobs_of_several_hosts_do_not_run_on_this_machine(unrun: Project) -> None:
    unrun.configure(devices="auto", hosts=HOSTS)
    refused = unrun.snakemake()
    assert refused.returncode != 0
    assert refused.stdout.splitlines()[-1].startswith("config: hosts = genoa, rome: kinds of nodes")
    assert not (unrun / "artifacts").exists()

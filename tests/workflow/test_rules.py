"""The rules are contracts: one script each, a log, an environment, resources for a cluster."""

import re
from pathlib import Path
from typing import Any

import pytest
import yte
from fingerprints import planned
from snakemake.io import is_flagged
from tightrope.engine_table import ENGINES
from tightrope.studies.table import STUDIES
from tiny_project import CONFIG, MODEL, Project

# of the CPU and of the GPU; a function takes that of the place where the job runs
CPU, GPU = "../envs/cpu.yaml", "../envs/gpu.yaml"
RELU = {"activation": "relu"}
TWICE = {"from": MODEL, "prune": {"target": "2x"}}
# no variant on a CPU
# asked for by name, after a run, where Snakemake runs
BUNDLES = {"bundle", "bundle_triton"}
ON_GPU = {f"build_{name}" for name, engine in ENGINES.items() if "cpu" not in engine.precisions}


@pytest.fixture(scope="module")
def rules(fresh: Project) -> dict[str, Any]:
    """Each rule that runs a script, as Snakemake has it."""
    with planned(fresh.folder) as workflow:
        return {rule.name: rule for rule in workflow.rules if rule.script}


def test_every_script_is_run_by_the_rule_of_its_name_and_one_builds_all_engines(fresh, rules):
    run = {name: Path(rule.script).stem for name, rule in rules.items()}
    assert {*run.values()} == {path.stem for path in (fresh / "scripts").glob("*.py")}
    shared = {f"build_{engine}": "build_engine" for engine in ENGINES}
    shared |= {f"measure_{study}": "measure_study" for study in STUDIES}
    shared["compare_activation"] = "measure_latency"
    assert run == {name: name for name in rules} | shared


def test_every_rule_has_a_log_an_environment_a_digest_of_its_code_and_resources(rules) -> None:
    for name, rule in rules.items():
        assert str(rule.log[0]).startswith(f"artifacts/logs/{name}/"), name
        params, resources = dict(rule.params.items()), rule.resources
        assert set(params) == {"code", "settings", "libraries"}, name
        assert resources["mem_mb"].value > 0 and resources["runtime"].value > 0, name
        environment, gpus = rule.conda_env, resources.get("gpu")
        chosen = callable(environment)
        assert chosen or str(environment) in (CPU, GPU), name
        assert chosen == (gpus is not None and gpus.is_evaluable()), name
        assert chosen or (str(environment) == GPU) == (gpus is not None and gpus.value == 1), name
        assert not any(is_flagged(path, "directory") for path in rule.output), name


def test_what_an_engine_keeps_for_its_next_builds_is_named_by_its_rule(rules) -> None:
    for engine, spec in ENGINES.items():
        device, (precision, *_) = next(iter(spec.precisions.items()))
        settings = dict(rules[f"build_{engine}"].params.items())["settings"]
        found = settings({"model": MODEL, "device": device, "rest": precision})
        assert found["state"] == f"artifacts/{MODEL}/work/{engine}"
    settings = dict(rules["train_model"].params.items())["settings"]
    assert settings({"model": MODEL})["state"] == f"artifacts/{MODEL}/work/training"


def test_each_job_has_the_digest_of_its_own_script_and_what_it_reads_of_a_spec(unrun) -> None:
    with planned(unrun.folder) as workflow:
        jobs = {job.rule.name: job for job in workflow.dag.jobs if job.params.get("code")}
    codes: dict[str, set[str]] = {}
    for name, job in jobs.items():
        codes.setdefault(job.params["code"], set()).add(Path(job.rule.script).stem)
        assert re.fullmatch("[0-9a-f]{8,}", job.params["code"]), name
    assert all(len(scripts) == 1 for scripts in codes.values())
    colours = jobs["render_report"].params["settings"]["colours"]
    assert colours == {engine: spec.colour for engine, spec in ENGINES.items()}


def test_the_report_reads_every_part_of_its_template(fresh: Project) -> None:
    """What a rule does not name would change without its knowing."""
    folder = fresh / "scripts/tightrope/report/template"
    with planned(fresh.folder) as workflow:
        (job,) = [job for job in workflow.dag.jobs if job.rule.name == "render_report"]
        assert {Path(path).name for path in job.input} >= {path.name for path in folder.iterdir()}


def test_the_slurm_profile_plans_every_job_with_its_resources(unrun, rules) -> None:
    profile = yte.process_yaml((unrun / "profiles/slurm/config.yaml").read_text())
    with_resources = set(rules) - BUNDLES
    assert set(profile["set-threads"]) == with_resources == set(profile["set-resources"])
    traffic = (
        "--config",
        "host=cpu-node",
        "traffic={variants: [cpu-pytorch-fp32]}",
        "throughput={variants: [cpu-pytorch-fp32], sequence: 8, batches: [1]}",
        "profile={variants: [cpu-pytorch-fp32]}",
        "idleness={variants: [cpu-pytorch-fp32]}",
        "explain=verify",
        "training={epochs: 2}",
    )
    unrun.configure(
        models={
            MODEL: CONFIG["models"][MODEL],
            "relu": {**CONFIG["models"][MODEL], **RELU},
            "half": TWICE,
            "student": {"from": MODEL, "distill": {"from": MODEL}, "train": {"epochs": 1}},
        },
        engines={
            name: list(engine.precisions["cpu"])
            for name, engine in ENGINES.items()
            if "cpu" in engine.precisions
        },
        accuracy_budget_points=50.0,  # what a pool of 32 can tell of int8-auto
    )
    done = unrun.snakemake(
        "--profile", "profiles/slurm", "--cores", "64", "--dry-run", "--verbose", *traffic
    )
    assert done.returncode == 0, done.stdout
    planned = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)+)", done.stdout, re.MULTILINE)
    assert {name for name, _ in planned} == {*rules, "all"} - ON_GPU - BUNDLES
    most = {"mem_mb": 60000, "runtime": 1440}  # of a node, of the partition
    for name, body in planned:
        if name == "all":
            continue
        (line,) = re.findall(r"^    resources: (.*)", body, re.MULTILINE)
        facts = dict(re.findall(r"(\w+)=([^,]+)", line))
        threads = dict(re.findall(r"^    (threads): (\d+)", body, re.MULTILINE))
        asked = profile["set-resources"][name]
        assert int(threads.get("threads", 1)) == profile["set-threads"][name], name
        for resource in ("mem_mb", "runtime"):
            # the rule's own figure, or the profile's, would grow with no attempt
            assert int(facts[resource]) == eval(asked[resource], {"attempt": 1}), (name, resource)
            assert eval(asked[resource], {"attempt": 2}) == 2 * int(facts[resource])
            assert eval(asked[resource], {"attempt": 1000}) == most[resource]
        assert facts["constraint"] == "cpu-node", name
        assert facts.get("gpu", "0") == "0", name
        exclusive = facts.get("slurm_extra") == "--exclusive"
        timed = name.startswith(("measure_", "verify_", "compare_", "race_", "choose_"))
        assert exclusive == timed, name

"""Interface for the Snakefile: the plan of jobs from the configuration, and their inputs."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

from tightrope.engine_table import ENGINES
from tightrope.machine.compiler import missing_compiler
from tightrope.machine.gpu import missing_packages
from tightrope.machine.host import describe_host, fingerprint, for_device, numerics_fingerprint
from tightrope.plan import reports
from tightrope.plan.cascades import cascade_jobs, cascade_records
from tightrope.plan.columns import Jobs
from tightrope.plan.comparisons import compared, references
from tightrope.plan.config import Document
from tightrope.plan.families import Family, family_records
from tightrope.plan.graphs import graph_columns, graph_records
from tightrope.plan.job_inputs import (
    audits,
    engine_manifest,
    from_checkpoint,
    int8_files,
)
from tightrope.plan.profiled import profiled, shared_by_profiles
from tightrope.plan.run import (
    DISTURBED,
    delete_disturbed,
    delete_failed,
    end_strictly,
    take_run_lock,
    this_run_executes_jobs,
)
from tightrope.plan.stability import requested
from tightrope.plan.throughput import measured_throughputs
from tightrope.plan.training import measured_trainings
from tightrope.plan.variants import configured, only_emulated
from tightrope.records.record import TRAINING
from tightrope.terminal.start import start_terminal
from tightrope.variants import DEVICES, Variant, baseline, is_onnx, parse

ATTEMPTS = "TIGHTROPE_ATTEMPTS"


class Plan(NamedTuple):
    """Planned builds and measurements, variants that cannot run here, and host keys.

    `jobs` has each model with each variant that can run, `traffic` those also measured under
    traffic, `throughput` those also with several instances, `profile` those whose operators are
    timed too, `idleness` those called after pauses, `builds` those built several times,
    `causes` those also measured without the causes of their time,
    `activations` those timed paired with the same variant of the model's reference in `references`,
    `families` the records by root and device,
    `training` the models whose training is measured, `cascades` the jobs of the small and of the
    large model of each cascade, `baselines` the name of the baseline per model
    and device; `host` and `numerics` are the host keys per device.
    """

    models: list[str]
    jobs: Jobs
    traffic: Jobs
    throughput: Jobs
    profile: Jobs
    idleness: Jobs
    builds: Jobs
    causes: Jobs
    activations: Jobs
    references: dict[str, str]
    families: dict[Family, list[str]]
    training: list[str]
    cascades: dict[str, Jobs]
    unavailable: list[tuple[str, str, str]]
    baselines: dict[str, dict[str, str]]
    host: dict[str, str]
    numerics: dict[str, str]


def make_plan(config: Document, host: Document | None = None) -> Plan:
    """Plan the variants to build on `host`, by default here, with reasons for unavailable ones."""
    host = host or describe_host()
    auto = config["host"] == "auto"
    given: dict[str, str] = {device: config["host"] for device in DEVICES}
    wanted = [(model, one) for model in config["models"] for one in configured(config, model, host)]
    reasons = {
        (model, variant): reason
        for model, variant in wanted
        if (reason := unavailable_reason(config, variant, host, config["models"][model]))
    }
    jobs = [job for job in wanted if job not in reasons]
    baselines = {
        name: {device: str(baseline(device, model["checkpoint"])) for device in DEVICES}
        for name, model in config["models"].items()
    }
    return Plan(
        models=list(config["models"]),
        jobs=jobs,
        traffic=requested(config, "traffic", jobs),
        throughput=measured_throughputs(config, jobs),
        profile=profiled(config, jobs),
        idleness=requested(config, "idleness", jobs),
        builds=requested(config, "builds", jobs),
        causes=profiled(config, jobs) if config["explain"] == "verify" else [],
        activations=compared(config, jobs),
        references=references(config),
        families=family_records(config, jobs),
        training=measured_trainings(config),
        cascades=cascade_jobs(config, jobs),
        unavailable=[(model, str(variant), why) for (model, variant), why in reasons.items()],
        baselines=baselines,
        host=keys(fingerprint, host) if auto else given,
        numerics=keys(numerics_fingerprint, host) if auto else given,
    )


def keys(name: Callable[[Document], str], host: Document) -> dict[str, str]:
    """Return the host key for each device, computed by the function `name`."""
    return {device: name(for_device(host, device)) for device in DEVICES}


def raced(plan: Plan, path: str, wildcards: Any) -> list[str]:
    """Return `path` for each variant of the model on the device of the wildcards."""
    return [
        path.format(model=model, variant=variant)
        for model, variant in plan.jobs
        if (model, variant.device) == (wildcards.model, wildcards.device)
    ]


def unavailable_reason(
    config: Document, variant: Variant, host: dict[str, Any], model: Document
) -> str | None:
    """Return why this variant of that entry of `models` cannot run on `host`, else None."""
    engine = ENGINES[variant.engine]
    if from_checkpoint(config, variant.engine) and is_onnx(model["checkpoint"]):
        return "no checkpoint: the model is an ONNX file"
    # a device requested explicitly, as on a cluster's head node, is planned even without a GPU here
    if variant.device == "cuda" and config["devices"] == "auto":
        missing = missing_packages(variant.engine) if host["gpu"] else "no NVIDIA GPU"
        if missing:
            return missing
    if emulated := only_emulated(config, variant, host):
        return emulated
    return missing_compiler() if engine.compiler else None


def begin_run(workflow: Any, config: Document, plan: Plan) -> IO[str] | None:
    """Prepare a run in the main process before the DAG is built; return the run lock to keep."""
    if not workflow.is_main_process or not this_run_executes_jobs():
        return None
    lock = take_run_lock()
    if lock is not None and config["retry_failed"]:
        delete_failed(failing_files(config, plan))
    if lock is not None and config["remeasure"] == DISTURBED:
        delete_disturbed([path for paths in records(plan).values() for path in paths])
    if config["strict"]:
        end_strictly("reports/summary.json")
    start_terminal(workflow)
    return lock


def generations(
    workflow: Any, config: Document, plan: Plan, lock: IO[str] | None
) -> dict[str, int]:
    """Return `reports.generation` of each rule that reports; who holds `lock` persists it.

    In the process of a job, files are missing that the run is about to make: they do not count.
    """
    files: dict[str, list[Path | str]] = {
        "summarize": reports.summarized_files(records(plan)),
        "render_report": [*graph_records(graph_columns(config, plan.jobs))],
    }
    main = workflow.is_main_process
    return {
        rule: reports.generation(rule, paths if main else [], persist=lock is not None)
        for rule, paths in files.items()
    }


def last_attempt(workflow: Any, wildcards: Any, attempt: int) -> int:
    """Return 1 when no attempt of the job follows this one, else 0.

    The main process knows Snakemake's --retries. On a cluster's nodes --retries is 0; they read the
    number of attempts from the environment that the main process passes on.
    """
    if workflow.is_main_process and workflow.execution_settings is not None:
        os.environ[ATTEMPTS] = str(workflow.execution_settings.retries + 1)
    return int(attempt >= int(os.environ.setdefault(ATTEMPTS, "1")))


def records(plan: Plan) -> dict[tuple[str, str], list[str]]:
    """Return the files of each planned variant, of trainings, families and cascades."""
    measured = {
        **{"traffic": plan.traffic, "throughput": plan.throughput, "profile": plan.profile},
        **{"idleness": plan.idleness, "builds": plan.builds, "causes": plan.causes},
        "activation": plan.activations,
    }
    found = {
        (model, str(variant)): [
            engine_manifest(model, variant),
            *audits(model, variant),
            f"reports/{model}/{variant}.latency.json",
            f"reports/{model}/{variant}.accuracy.json",
            *(
                f"reports/{model}/{variant}.{kind}.json"
                for kind, jobs in measured.items()
                if (model, variant) in jobs
            ),
            f"reports/{model}/{variant.device}.race.json",
        ]
        for model, variant in plan.jobs
    }
    training = {(model, TRAINING): [f"reports/{model}/training.json"] for model in plan.training}
    return found | training | plan.families | cascade_records(plan.cascades)


def failing_files(config: Document, plan: Plan) -> list[str]:
    """Return the files that may hold a failure, including those that variants share."""
    own = [path for paths in records(plan).values() for path in paths]
    int8 = [path for job in plan.jobs for path in int8_files(config, *job)]
    return (
        int8
        + shared_by_profiles(plan.profile)
        + own
        + graph_records(graph_columns(config, plan.jobs))
    )


def audited(jobs: Jobs) -> Jobs:
    """Return the jobs whose precision needs an audit."""
    return [job for job in jobs if audits(job[0], job[1])]


def baseline_engine(plan: Plan, wildcards: Any) -> str:
    """Return the engine.json of a variant's baseline; for the baseline its own."""
    return engine_manifest(wildcards.model, parse(baseline_of(plan, wildcards)))


def reference_engine(plan: Plan, wildcards: Any) -> str:
    """Return the engine.json of the same variant of the model's reference."""
    return engine_manifest(plan.references[wildcards.model], parse(wildcards.variant))


def baseline_of(plan: Plan, wildcards: Any) -> str:
    """Return the name of a variant's baseline."""
    return plan.baselines[wildcards.model][parse(wildcards.variant).device]


def baseline_of_device(plan: Plan, wildcards: Any) -> str:
    """Return the name of the baseline of a model on a device."""
    return plan.baselines[wildcards.model][wildcards.device]


def variant_suffixes(plan: Plan) -> set[str]:
    """Return the name parts after device and engine of the variants that are built."""
    planned = [one for _, one in plan.jobs]
    built = planned + [one.quantized_as for one in planned if one.quantized_as]
    return {str(one).removeprefix(f"{one.device}-{one.engine}-") for one in built}

"""What the Snakefile needs to know: the plan of jobs from the configuration, and their inputs."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

from tightrope.engine_table import ENGINES
from tightrope.errors import ConfigError
from tightrope.machine.compiler import missing_compiler
from tightrope.machine.gpu import missing_packages
from tightrope.machine.host import describe_host, fingerprint, for_device, numerics_fingerprint
from tightrope.plan.comparisons import compared, references
from tightrope.plan.config import Document, checked
from tightrope.plan.graphs import graph_columns, graph_records
from tightrope.plan.job_inputs import (
    audits,
    engine_manifest,
    from_checkpoint,
    int8_files,
    scheme_of,
)
from tightrope.plan.run import (
    DISTURBED,
    delete_disturbed,
    delete_failed,
    delete_reports,
    end_strictly,
    executes_jobs,
    take_run_lock,
)
from tightrope.plan.training import measured_trainings
from tightrope.plan.variants import configured, only_emulated
from tightrope.records.record import TRAINING
from tightrope.terminal.plugin import show_run
from tightrope.variants import AUTO, DEVICES, Variant, baseline, is_onnx, parse

ATTEMPTS = "TIGHTROPE_ATTEMPTS"
REPORTS = [Path(f"reports/summary.{suffix}") for suffix in ("json", "csv", "html")]


Jobs = list[tuple[str, Variant]]


class Plan(NamedTuple):
    """What is built and measured, what cannot run here, and the host keys.

    `jobs` has each model with each of its variants that can run, `traffic` those that are also
    measured under real traffic, `activations` those that are timed beside the same variant of the
    model that `references` names, `training` the models whose training is measured, `baselines` for
    each model and device the name of the variant that the others are compared with; `host` and
    `numerics` are the keys of work on each device.
    """

    models: list[str]
    jobs: Jobs
    traffic: Jobs
    activations: Jobs
    references: dict[str, str]
    training: list[str]
    unavailable: list[tuple[str, str, str]]
    baselines: dict[str, dict[str, str]]
    host: dict[str, str]
    numerics: dict[str, str]


def checked_or_exit(config: Document, schema: str) -> Document:
    """The checked configuration; an error ends the process with its one line."""
    try:
        return checked(config, schema)
    except ConfigError as error:
        sys.exit(str(error))


def make_plan(config: Document, host: Document | None = None) -> Plan:
    """The variants to build on `host`, by default here, and why the others are unavailable."""
    host = host or describe_host()
    auto = config["host"] == "auto"
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
        traffic=[job for job in jobs if str(job[1]) in config["traffic"]["variants"]],
        activations=compared(config, jobs),
        references=references(config),
        training=measured_trainings(config),
        unavailable=[(model, str(variant), why) for (model, variant), why in reasons.items()],
        baselines=baselines,
        host=keys(fingerprint, host) if auto else dict.fromkeys(DEVICES, config["host"]),
        numerics=(
            keys(numerics_fingerprint, host) if auto else dict.fromkeys(DEVICES, config["host"])
        ),
    )


def keys(name: Callable[[Document], str], host: Document) -> dict[str, str]:
    """The key of that host for work on each device, by the function that gives it."""
    return {device: name(for_device(host, device)) for device in DEVICES}


def columns(jobs: Jobs) -> dict[str, list[str]]:
    """The jobs as values of the wildcards of a path, to be put together with `zip`."""
    return {
        "model": [model for model, _ in jobs],
        "variant": [str(variant) for _, variant in jobs],
    }


def race_columns(jobs: Jobs) -> dict[str, list[str]]:
    """Each model with each of its devices, as `columns` has jobs."""
    found = dict.fromkeys((model, variant.device) for model, variant in jobs)
    return {"model": [model for model, _ in found], "device": [device for _, device in found]}


def raced(plan: Plan, path: str, wildcards: Any) -> list[str]:
    """`path` of each variant of that model on that device."""
    return [
        path.format(model=model, variant=variant)
        for model, variant in plan.jobs
        if (model, variant.device) == (wildcards.model, wildcards.device)
    ]


def unavailable_reason(
    config: Document, variant: Variant, host: dict[str, Any], model: Document
) -> str | None:
    """Why this variant of that entry of `models` cannot run on `host`, else None."""
    engine = ENGINES[variant.engine]
    if from_checkpoint(config, variant.engine) and is_onnx(model["checkpoint"]):
        return "no checkpoint: the model is an ONNX file"
    # asked for outright, as on the head node of a cluster, it is planned and fails where it must
    if variant.device == "cuda" and config["devices"] == "auto":
        missing = missing_packages(variant.engine) if host["gpu"] else "no NVIDIA GPU"
        if missing:
            return missing
    if emulated := only_emulated(config, variant, host):
        return emulated
    return missing_compiler() if engine.compiler else None


def begin_run(workflow: Any, config: Document, plan: Plan) -> IO[str] | None:
    """The main process's part before the DAG is built; the run lock, to be kept."""
    if not workflow.is_main_process or not executes_jobs(sys.argv):
        return None
    lock = take_run_lock()
    if lock is not None:
        if config["retry_failed"]:
            delete_failed(failing_files(config, plan))
        if config["remeasure"] == DISTURBED:
            delete_disturbed([path for paths in records(plan).values() for path in paths])
        delete_reports(REPORTS, records(plan), graph_records(graph_columns(config, plan.jobs)))
    if config["strict"]:
        end_strictly("reports/summary.json")
    show_run()
    return lock


def last_attempt(workflow: Any, wildcards: Any, attempt: int) -> int:
    """1 when the job gets no attempt after this one, else 0.

    The main process knows Snakemake's --retries; a cluster's nodes, where it is 0, read how
    many attempts there are from the environment that the main process passes on.
    """
    if workflow.is_main_process and workflow.execution_settings is not None:
        os.environ[ATTEMPTS] = str(workflow.execution_settings.retries + 1)
    return int(attempt >= int(os.environ.setdefault(ATTEMPTS, "1")))


def records(plan: Plan) -> dict[tuple[str, str], list[str]]:
    """The engine and the records of each planned model and variant, and those of trainings."""
    return {
        (model, str(variant)): [
            engine_manifest(model, variant),
            *audits(model, variant),
            f"reports/{model}/{variant}.latency.json",
            f"reports/{model}/{variant}.accuracy.json",
            *[f"reports/{model}/{variant}.traffic.json"] * ((model, variant) in plan.traffic),
            *[f"reports/{model}/{variant}.activation.json"]
            * ((model, variant) in plan.activations),
            f"reports/{model}/{variant.device}.race.json",
        ]
        for model, variant in plan.jobs
    } | {(model, TRAINING): [f"reports/{model}/training.json"] for model in plan.training}


def failing_files(config: Document, plan: Plan) -> list[str]:
    """The files that may hold a failure; those that variants share come with each of them."""
    own = [path for paths in records(plan).values() for path in paths]
    shared = [path for job in plan.jobs for path in int8_files(config, *job)]
    return shared + own + graph_records(graph_columns(config, plan.jobs))


def audited(jobs: Jobs) -> Jobs:
    """Those of the jobs whose answers may collapse."""
    return [job for job in jobs if audits(job[0], job[1])]


def search_columns(config: Document, jobs: Jobs) -> dict[str, list[str]]:
    """Model, scheme and calibration of each search of these jobs, as `columns` has the jobs."""
    found = dict.fromkeys(
        (model, scheme_of(config, variant), variant.calibration)
        for model, variant in jobs
        if variant.precision == AUTO
    )
    names = ("model", "scheme", "calibration")
    return {name: [search[place] for search in found] for place, name in enumerate(names)}


def baseline_engine(plan: Plan, wildcards: Any) -> str:
    """The engine.json that a variant is compared with, its own for the baseline."""
    return engine_manifest(wildcards.model, parse(baseline_of(plan, wildcards)))


def reference_engine(plan: Plan, wildcards: Any) -> str:
    """The engine.json of the same variant of the model that it differs from in its activation."""
    return engine_manifest(plan.references[wildcards.model], parse(wildcards.variant))


def baseline_of(plan: Plan, wildcards: Any) -> str:
    """The name of the variant that a variant is compared with."""
    return plan.baselines[wildcards.model][parse(wildcards.variant).device]


def baseline_of_device(plan: Plan, wildcards: Any) -> str:
    """The name of the variant that all of a model on a device are compared with."""
    return plan.baselines[wildcards.model][wildcards.device]


def rests(plan: Plan) -> set[str]:
    """What stands behind device and engine in the names of the variants that are built."""
    planned = [one for _, one in plan.jobs]
    built = planned + [one.quantized_as for one in planned if one.quantized_as]
    return {str(one).removeprefix(f"{one.device}-{one.engine}-") for one in built}

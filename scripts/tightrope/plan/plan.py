"""The plan of jobs from the configuration, and what their rules ask of it."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tightrope.data.splits import SPLITS
from tightrope.engine_table import ENGINES
from tightrope.machine.host import numerics_fingerprint
from tightrope.plan.distillation import ASKED
from tightrope.plan.families import Family, compared, families, references
from tightrope.plan.hosts import (
    Document,
    Jobs,
    host_keys,
    places,
    planned_on,
    planning_host,
    runs_here,
)
from tightrope.plan.job_inputs import (
    GRAPH,
    ONNX_FILES,
    engine_manifest,
    from_checkpoint,
    graphs_of,
    int8_files,
    paths,
    searches_of,
)
from tightrope.plan.studies import measured_trainings, profiled, requested
from tightrope.plan.variants import configured, only_emulated
from tightrope.records.record import TRAINING
from tightrope.signature import IMAGE
from tightrope.studies.table import STUDIES
from tightrope.variants import (
    CALIBRATION,
    METHODS,
    SCHEMES,
    Variant,
    baseline,
    device_of,
    host_of,
    is_onnx,
)


class Plan(NamedTuple):
    """Planned builds and measurements, variants that cannot run here, and host keys.

    `jobs` has each model with each variant that can run, `variants` the same by model and place (a
    device, or a device of one of `hosts`), `graphs` what the report draws and `searches` those of
    int8-auto, see `job_inputs`. `measured` are those that have more records, by the suffix
    of the record: `profile` where operators are timed too, `causes` without the causes of their
    time, `activation` paired with the same variant of the model's reference in `references`,
    and each study. `families` are the models of each family by root and place, `training`
    the models whose training is measured, `baselines` the name of the baseline per model and place;
    `host` and `numerics` are the host keys per place.
    `unavailable` and `failed` are the variants that are not planned, each with the reason: `failed`
    those of models without data or checkpoint.
    """

    models: list[str]
    jobs: Jobs
    variants: dict[tuple[str, str], list[Variant]]
    graphs: list[tuple[str, str]]
    searches: list[tuple[str, str, str]]
    measured: dict[str, Jobs]
    references: dict[str, str]
    families: dict[Family, list[str]]
    training: list[str]
    unavailable: list[tuple[str, str, str]]
    failed: list[tuple[str, str, str]]
    baselines: dict[str, dict[str, str]]
    host: dict[str, str]
    numerics: dict[str, str]


def make_plan(
    config: Document, host: Document | None = None, failed: Mapping[str, str] | None = None
) -> Plan:
    """Plan the variants to build on `host`, by default this run's, and say why others cannot be.

    `failed` are the models without data or checkpoint, each with the reason.
    """
    host, failed = host or planning_host(), failed or {}
    wanted = [(model, one) for model in config["models"] for one in configured(config, model, host)]
    reasons = {
        (model, variant): reason
        for model, variant in wanted
        if (reason := unavailable_reason(config, variant, host, config["models"][model]))
    }
    possible = [job for job in wanted if job not in reasons]
    jobs = [(model, variant) for model, variant in possible if model not in failed]
    timed = profiled(config, jobs)
    # the settings that remove a cause are those of a CPU
    verified = [job for job in timed if job[1].device == "cpu" and config["explain"] == "verify"]
    return Plan(
        models=[model for model in config["models"] if model not in failed],
        jobs=jobs,
        variants=by_place(jobs),
        graphs=graphs_of(config, jobs),
        searches=searches_of(config, jobs),
        measured={
            "profile": timed,
            "causes": verified,
            "activation": compared(config, jobs),
            **{name: requested(config, name, jobs) for name in STUDIES},
        },
        references=references(config),
        families=families(config, jobs),
        training=[model for model in measured_trainings(config) if model not in failed],
        unavailable=[(model, str(variant), why) for (model, variant), why in reasons.items()],
        failed=[(name, str(one), failed[name]) for name, one in possible if name in failed],
        baselines=baselines_of(config),
        host=host_keys(config, host),
        numerics=host_keys(config, host, numerics_fingerprint),
    )


def baselines_of(config: Document) -> dict[str, dict[str, str]]:
    """Return the name of the baseline of each model at each place."""
    return {
        name: {
            one: str(baseline(device_of(place), model["checkpoint"], host_of(place)))
            for one, place in places(config).items()
        }
        for name, model in config["models"].items()
    }


def unavailable_reason(
    config: Document, variant: Variant, host: dict[str, Any], model: Document
) -> str | None:
    """Return why this variant of that entry of `models` cannot run on `host`, else None."""
    engine = ENGINES[variant.engine]
    if from_checkpoint(config, variant.engine) and is_onnx(model["checkpoint"]):
        return "no checkpoint: the model is an ONNX file"
    if variant.engine == "tvm" and model["task"] == IMAGE:
        return "TVM compiles text models only"
    # a device requested explicitly, as on a cluster's head node, is planned even without a GPU here
    told = config["devices"] == "auto" or (host["gpu"] and runs_here(config))
    if variant.device == "cuda" and told and not config["hosts"]:
        missing = planned_on()["packages"][variant.engine] if host["gpu"] else "no NVIDIA GPU"
        if missing:
            return missing
    if emulated := only_emulated(config, variant, host):
        return emulated
    return planned_on()["compiler"] if engine.compiler else None


def raced(plan: Plan, models: Iterable[str], place: str) -> Jobs:
    """Return the variants of these models at a place."""
    return [(model, one) for model in models for one in plan.variants.get((model, place), ())]


def by_place(jobs: Jobs) -> dict[tuple[str, str], list[Variant]]:
    """Return the variants of the jobs by model and place."""
    found: dict[tuple[str, str], list[Variant]] = {}
    for model, variant in jobs:
        found.setdefault((model, variant.place), []).append(variant)
    return found


def variant_suffixes(plan: Plan) -> set[str]:
    """Return the name parts after device and engine of the variants that are built."""
    planned = [one for _, one in plan.jobs]
    built = planned + [one.quantized_as for one in planned if one.quantized_as]
    return {one.rest for one in built}


def constraints(config: Document, plan: Plan) -> dict[str, str]:
    """Return what the wildcards of all rules match."""
    return {
        "model": one_of(config["models"]),
        "variant": one_of({str(variant) for _, variant in plan.jobs}),
        "device": one_of(plan.host),
        "rest": one_of(variant_suffixes(plan)),
        "scheme": one_of(SCHEMES),
        "split": one_of(SPLITS),
        "graph": GRAPH,
        "calibration": CALIBRATION,
        "method": one_of(METHODS),
        "samples": "[1-9][0-9]*",
        "asked": ASKED,
        "structures": "[a-z0-9_-]+",
    }


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression for any of `names`, the longest that it can match first.

    What several of them begin with is in it once: Snakemake scans it for each path of each job,
    and the names of thousands of variants are a long text.
    """
    known = sorted({*names})
    if len(known) < 2:
        return "".join(map(re.escape, known))
    start = os.path.commonprefix(known)  # noqa: RUF071 of names, not of paths
    rests: dict[str, list[str]] = {}
    for name in known:
        rests.setdefault(name[len(start) :][:1], []).append(name[len(start) :])
    shorter = "?" if rests.pop("", None) else ""
    return f"{re.escape(start)}(?:{'|'.join(map(one_of, rests.values()))}){shorter}"


def records(plan: Plan) -> dict[tuple[str, str], list[str]]:
    """Return the files of each planned variant, of trainings and families."""
    measured = {kind: {*jobs} for kind, jobs in plan.measured.items()}
    found = {
        (model, str(variant)): [
            engine_manifest(model, variant),
            f"reports/{model}/{variant}.latency.json",
            f"reports/{model}/{variant}.accuracy.json",
            *(
                f"reports/{model}/{variant}.{kind}.json"
                for kind, jobs in measured.items()
                if (model, variant) in jobs
            ),
            f"reports/{model}/{variant.place}.race.json",
        ]
        for model, variant in plan.jobs
    }
    training = {(model, TRAINING): [f"reports/{model}/training.json"] for model in plan.training}
    families = {
        (root, place): [f"reports/{root}/{place}.family.json"] for root, place in plan.families
    }
    return found | training | families


def failing_files(config: Document, plan: Plan) -> list[str]:
    """Return the files that may hold a failure, including those that variants share."""
    costs = "artifacts/{model}/costs/{scheme}-{calibration}.json"
    graphs = "reports/{model}/graphs/{graph}.json"
    places = by_place(plan.measured["profile"])
    shared = [f"artifacts/{model}/{place}.requests.json" for model, place in places]
    shared += [f"artifacts/machine/{place}.peaks.json" for _, place in places]
    return [
        *(path for job in plan.jobs for path in int8_files(config, *job)),
        *paths(costs, plan.searches),
        *dict.fromkeys(shared),
        *(path for files in records(plan).values() for path in files),
        *(f"artifacts/{model}/{name}" for model in plan.models for name in ONNX_FILES.values()),
        *paths(graphs, plan.graphs),
    ]

"""The jobs of the rules: what they read, and what makes their files stale.

A rule names its files, its script, its memory and its time. ROWS has the rest, which follows from
the configuration, the plan and the wildcards of a job: of these a `Job` is made, once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

from tightrope.artifacts.provenance import code_digest, library_versions
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.engine_table import ENGINES
from tightrope.plan import distillation, hosts, inputs, job_inputs, job_params, pruning, reports
from tightrope.plan.hosts import Document, Jobs
from tightrope.plan.job import Job
from tightrope.plan.job_inputs import engine_inputs, engine_manifest
from tightrope.plan.location import Location
from tightrope.plan.plan import Plan, raced
from tightrope.plan.shapes import full_shapes_of, shapes_of, sizes_in_words
from tightrope.plan.studies import recipe_to_measure, study_settings
from tightrope.studies.table import STUDIES
from tightrope.training.recipe import QUANTIZATION_AWARE
from tightrope.variants import Variant, device_of, parse

# one dictionary for all jobs with the same libraries: Snakemake keeps the params of each job
versions = cache(library_versions)
ENVIRONMENTS = {"cpu": "../envs/cpu.yaml", "cuda": "../envs/gpu.yaml"}
# stands for the library that encodes the examples of a model
ENCODER = "encoder"
# resources that say how many examples of a split are asked for
SIZES = ("train_size", "evaluation_size", "calibration_size")
# libraries that shape the ONNX file of a structure, and those that train
EXPORT = ("torch", "transformers", "onnx", "onnxscript", "onnxslim")
TRAINING = ("torch", "transformers", "safetensors", ENCODER)
RUN = ("host", "max_sequence", "threads")
RACE = (*RUN, "baseline", "shapes", "decision", "budget_points", "accept_disturbed")
Get = Callable[[Job], Any]


class Row(NamedTuple):
    """What jobs of a rule depend on, besides the inputs that the rule names itself.

    `settings` are what the script reads, see `value_of`; `own` have another value than there.
    `libraries` shape its files, and so do `versions`. `loads` are variants whose engines it loads,
    `calls` the functions of these engines that it uses: their code and libraries count. `entries`
    are other code that it loads by name, see `code_digest`. `inputs` are files by name. Its
    `script` has the name of the rule unless it is given.
    """

    settings: Sequence[str] = ()
    libraries: Sequence[str] = ()
    inputs: Sequence[Callable[[Job], Mapping[str, Any]]] = ()
    loads: Callable[[Job], Iterable[Variant]] = lambda job: ()
    calls: Sequence[str] = ("load",)
    entries: Callable[[Job], Iterable[str]] = lambda job: ()
    versions: Callable[[Job], dict[str, str | None]] = lambda job: {}
    own: Mapping[str, Get] = {}
    script: str = ""


@dataclass
class Table:
    """The jobs of a workflow: functions of wildcards for its rules.

    `names` are added to the wildcards: the engine that a rule builds, or the device it runs on.
    """

    config: Document
    plan: Plan
    location: Location
    workflow: Any
    jobs: dict[tuple[tuple[str, str], ...], Job] = field(default_factory=dict)

    def function(self, get: Get, **names: str) -> Callable[[Any], Any]:
        """Return a function of wildcards for what `get` returns for their job."""

        def of_wildcards(wildcards: Any) -> Any:
            key = (*wildcards.items(), *names.items())
            if key not in self.jobs:
                own = (self.config, self.plan, self.location, self.workflow)
                self.jobs[key] = Job(*own, dict(key))
            return get(self.jobs[key])

        return of_wildcards

    def setting(self, name: str, **names: str) -> Callable[[Any], Any]:
        """Return a function for a setting, see `value_of`."""
        return self.function(lambda job: value_of(name, job), **names)

    def paths(self, path: str, rows: Any) -> Callable[[Any], list[str]]:
        """Return a function for `job_inputs.paths` of these rows, or of what they are for a job."""
        return self.function(
            lambda job: job_inputs.paths(path, rows(job) if callable(rows) else rows)
        )

    def inputs(self, rule: str, **names: str) -> Callable[[Any], Any]:
        """Return a function for the inputs that a rule does not name itself."""

        def get(job: Job) -> Mapping[str, Any]:
            found = [one(job) for one in ROWS[rule].inputs]
            return self.location.given({name: path for one in found for name, path in one.items()})

        return self.function(get, **names)

    def params(self, rule: str, **names: str) -> dict[str, Callable[[Any], Any]]:
        """Return the params of a rule: `code`, `settings` and `libraries`."""
        row = ROWS[rule]

        def code(job: Job) -> str:
            own = [
                f"tightrope/engines/{engine}.py:{name}"
                for engine in engines(job)
                for name in row.calls
            ]
            script = f"{row.script or rule}.py"
            return code_digest(self.location.scripts, script, *own, *row.entries(job))

        def settings(job: Job) -> Document:
            return {
                **{name: value_of(name, job) for name in row.settings},
                **{name: get(job) for name, get in row.own.items()},
            }

        def libraries(job: Job) -> dict[str, str | None]:
            runtimes = [name for engine in engines(job) for name in ENGINES[engine].libraries]
            own = [job.encoder if name == ENCODER else name for name in row.libraries]
            found = versions(*runtimes, *own)
            return found | more if (more := row.versions(job)) else found

        def engines(job: Job) -> list[str]:
            return sorted({variant.engine for variant in row.loads(job)})

        values = {"code": code, "settings": settings, "libraries": libraries}
        return {name: self.function(get, **names) for name, get in values.items()}


def value_of(name: str, job: Job) -> Any:
    """Return one of SETTINGS, else that key of the model, the configuration or the plan."""
    if name in SETTINGS:
        return SETTINGS[name](job)
    above = job.keys if name in job.keys else job.config
    return above[name] if name in above else getattr(job.plan, name)


def constraint_of(job: Job) -> str | None:
    """Return the Slurm constraint of a job; without `hosts` that of the profile, as it is written.

    Rules need it, because what they say themselves replaces it.
    """
    resources = job.workflow.resource_settings.default_resources or {}
    default = resources.get("constraint")
    return hosts.constraint_of(job.config, default and str(default.raw), job.place)


def of(function: Callable[..., Any], *names: str) -> Get:
    """Return the function of the configuration, the model and these wildcards, for a job."""
    return lambda job: function(job.config, job.model, *[job.names[name] for name in names])


def of_race(job: Job) -> Jobs:
    """Return the variants of its model at its place."""
    return raced(job.plan, [job.model], job.place)


def of_family(job: Job) -> Jobs:
    """Return the variants of the models of its family at its place."""
    return raced(job.plan, job.plan.families[job.model, job.place], job.place)


def members(job: Job) -> list[tuple[str, str]]:
    """Return the models of its family, each with its place."""
    return [(model, job.place) for model in job.plan.families[job.model, job.place]]


def structured(job: Job) -> list[Variant]:
    """Return the variant that structures are timed with, if they are."""
    return [parse(job.structures["variant"])] if job.structures else []


def build_libraries(job: Job) -> dict[str, str | None]:
    """Return versions of what shapes the engine of a variant."""
    return versions(*job_params.libraries_of(job.config, job.variant.engine))


def unlabelled(job: Job) -> str | None:
    """Return the source of the texts without labels that a teacher is asked about, None without."""
    return distillation.own_request(job.config, job.model, job.names["asked"]).get("unlabelled")


def training_code(job: Job) -> list[str]:
    """Return the modules that a training loads by name."""
    learnt = [f"{QUANTIZATION_AWARE}.py"] if job.keys.get("qat") else []
    return [*checkpoint_source.importer_modules(job.keys["checkpoint"]), *learnt]


def split_size(split: str, job: Job) -> int:
    """Return the size of a split as a resource: 0 for all that there are."""
    return job_params.split_sizes(job.config, job.model)[split] or 0


# what a setting is that is no key, or has other values than it
SETTINGS: dict[str, Get] = {
    "accept_disturbed": lambda job: job.config["latency"]["accept_disturbed"],
    "asked": of(pruning.asked_of_model),
    "baseline": lambda job: str(job.baseline),
    "budget_points": lambda job: job.config["accuracy_budget_points"],
    "configuration": lambda job: reports.configuration_files(job.workflow),
    "constraint": constraint_of,
    "engine": lambda job: job.structures,
    "environment": lambda job: ENVIRONMENTS[device_of(job.place)],
    "gpu": lambda job: int(device_of(job.place) == "cuda"),
    "host": lambda job: job.plan.host[job.place],
    "latency": of(job_params.latency_of_model),
    "limits": of(job_params.limits_of),
    "options": lambda job: job_params.engine_options(job.config, job.model, job.variant),
    "overrides": lambda job: reports.overrides(job.workflow),
    "percentile": of(job_params.percentile_of, "method"),
    "plan": lambda job: study_settings(job.config, job.names["study"], job.model),
    "prepared": lambda job: job_inputs.prepared(job.config, job.plan.jobs),
    "prices": lambda job: hosts.prices_of(job.config),
    "prune": of(pruning.prune_of_model),
    "repair": lambda job: job.config["repairs"].get(job.calibration[1], {}),
    "request": of(distillation.teacher_request, "asked"),
    "shapes": of(shapes_of),
    "sizes": of(job_params.deciding_sizes, "split"),
    "sizes_in_words": of(sizes_in_words),
    "streams": lambda job: job.config["cuda"]["streams"] if job.variant.device == "cuda" else [],
    "study": lambda job: job.names["study"],
    "variant": lambda job: str(job.variant),
    **{name: partial(split_size, name.removesuffix("_size")) for name in SIZES},
}
# of some rules
NUMERICS: dict[str, Get] = {"host": lambda job: job.plan.numerics[job.place]}
FULL_SHAPES: dict[str, Get] = {"shapes": of(full_shapes_of)}
OF_RACE: dict[str, Get] = {"latency": lambda job: job_params.latency_settings(job.config)}
ROWS: dict[str, Row] = {
    "prepare_data": Row(
        ("task", "data", "images", "columns", "seed", "limits"),
        inputs=[lambda job: {"files": data_sources.local_files(**job.data)}],
        entries=lambda job: data_sources.modules(job.keys["data"], task=job.keys["task"]),
        versions=lambda job: data_sources.libraries(**job.data),
    ),
    "split_data": Row(("sizes",)),
    "prepare_checkpoint": Row(
        ("task", "checkpoint", "checkpoint_sha256", "quantized", "seed"),
        inputs=[lambda job: {"files": checkpoint_source.local_files(job.keys["checkpoint"])}],
        entries=lambda job: checkpoint_source.modules(job.keys["checkpoint"]),
        versions=lambda job: checkpoint_source.libraries(job.keys["checkpoint"]),
    ),
    "measure_structures": Row((*RUN, "engine"), EXPORT, loads=structured, calls=("load", "build")),
    "choose_structure": Row(
        ("asked", "engine", "labels", "max_sequence", "seed", "threads"),
        own={"host": lambda job: job.structures and job.plan.host["cpu"]},
        inputs=[of(pruning.structure_inputs)],
        loads=structured,
        calls=("load", "build"),
        versions=lambda job: versions(*EXPORT if job.structures else EXPORT[:2]),
    ),
    "run_teacher": Row(
        ("request", "threads"),
        ("torch", "transformers", ENCODER),
        inputs=[of(distillation.teacher_inputs, "asked")],
        entries=lambda job: data_sources.modules(one) if (one := unlabelled(job)) else (),
        versions=lambda job: data_sources.libraries(one) if (one := unlabelled(job)) else {},
    ),
    "train_model": Row(
        ("train", "qat", "inputs", "activation", "prune", "distill", "labels", "seed", "threads"),
        TRAINING,
        own={"state": lambda job: job.location.made(f"{job.folder}/work/training")},
        inputs=[
            of(distillation.taught_inputs),
            of(pruning.structure_of_model),
            inputs.training_examples,
        ],
        entries=training_code,
    ),
    "measure_training": Row(
        ("host", "activation", "prune", "labels", "training", "threads"),
        TRAINING,
        own={"train": of(recipe_to_measure)},
        inputs=[of(pruning.structure_of_model)],
    ),
    "export_onnx": Row(("threads",), EXPORT[:4]),
    "simplify_onnx": Row(("threads",), ("onnx", "onnxslim")),
    "calibrate": Row(("max_sequence", "percentile", "threads"), ("onnxruntime", ENCODER)),
    "quantize_onnx": Row(("repair",), ("onnx", "onnxruntime"), [inputs.quantizing]),
    "measure_costs": Row(("host", "threads"), ("onnxruntime",), own=FULL_SHAPES),
    "search_operators": Row(
        ("budget_points", "search_smoothquant", "sensitivity_samples", "max_sequence", "threads"),
        ("onnx", "onnxruntime", ENCODER),
    ),
    "build_engine": Row(
        ("variant", "options", "threads"),
        own={
            **NUMERICS,
            "state": lambda job: job.location.made(f"{job.folder}/work/{job.variant.engine}"),
        },
        inputs=[lambda job: engine_inputs(job.config, job.model, job.variant)],
        entries=lambda job: [f"tightrope/engines/{job.variant.engine}.py:build"],
        versions=build_libraries,
    ),
    "measure_latency": Row(
        (*RUN, "shapes", "streams", "latency"),
        inputs=[inputs.judged, lambda job: {"baseline": engine_manifest(job.model, job.baseline)}],
        loads=lambda job: (job.variant, job.baseline),
    ),
    "compare_activation": Row(
        (*RUN, "shapes", "latency"),
        own={"streams": lambda job: []},
        inputs=[inputs.judged, inputs.reference],
        loads=lambda job: [job.variant],
        script="measure_latency",
    ),
    "measure_accuracy": Row(
        ("max_sequence", "accuracy_seconds", "threads"),
        own=NUMERICS,
        inputs=[inputs.collapse],
        loads=lambda job: [job.variant],
    ),
    "race_finalists": Row(
        RACE,
        own={**OF_RACE, "goal": lambda job: job_params.goal_of_race(job.config)},
        loads=lambda job: [variant for _, variant in of_race(job)],
    ),
    "race_family": Row(
        RACE, own=OF_RACE, loads=lambda job: [variant for _, variant in of_family(job)]
    ),
    "measure_study": Row(
        (*RUN, "study", "plan"),
        loads=lambda job: [job.variant],
        entries=lambda job: [
            f"tightrope/studies/{job.names['study']}.py:{name}" for name in ("measure", "Settings")
        ],
        versions=lambda job: versions(*STUDIES[job.names["study"]].libraries),
    ),
    "measure_peaks": Row(("host", "threads"), ("torch",)),
    "measure_requests": Row(RUN, ("onnxruntime", ENCODER), [inputs.counted], own=FULL_SHAPES),
    "measure_profile": Row(
        RUN,
        inputs=[inputs.profile],
        loads=lambda job: [job.variant],
        calls=("load", "operator_times", "layer_times"),
    ),
    "verify_causes": Row(
        RUN,
        own={"precisions": lambda job: ENGINES[job.variant.engine].precisions},
        inputs=[inputs.causes],
        loads=lambda job: [job.variant],
        calls=("load", "build"),
        versions=build_libraries,
    ),
    "summarize": Row(
        (
            *("configuration", "overrides", "unavailable", "failed", "baselines", "references"),
            *("budget_points", "goal", "prices", "prepared", "accept_disturbed"),
        ),
        ("pillow",),
        [lambda job: {"prepared": job_inputs.prepared_files(job.config, job.plan.jobs)}],
    ),
    "describe_graph": Row((), ("onnx",), [inputs.graph_files]),
    "render_report": Row(
        libraries=("vl-convert-python",),
        inputs=[inputs.report_template],
        own={"colours": lambda job: {name: one.colour for name, one in ENGINES.items()}},
    ),
    # libraries of requirements.txt, beside those that the engine was built with
    "bundle": Row(
        ("max_sequence",),
        ("numpy", "tokenizers", "pillow"),
        [inputs.bundle_programs],
        own={"bundled": lambda job: ENGINES[job.variant.engine].bundled},
    ),
    "bundle_triton": Row(
        own={"instructions": lambda job: ENGINES[job.variant.engine].instructions}
    ),
}

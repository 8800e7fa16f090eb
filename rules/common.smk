import os
import re
import sys
from functools import partial

# of this file, also where another workflow imports this one
PROJECT = os.path.dirname(workflow.current_basedir.get_path_or_uri(secret_free=True))
sys.path.insert(0, f"{PROJECT}/scripts")

from tightrope.artifacts.failures import known_reasons
from tightrope.artifacts.files import file_state
from tightrope.artifacts.provenance import code_digest, library_versions as versions_of
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.data.splits import SPLITS
from tightrope.engine_table import ENGINES
from tightrope.errors import or_exit
from tightrope.machine import cores
from tightrope.plan import (
    announce,
    begin,
    continuing,
    distillation,
    hosts,
    job_inputs,
    job_params,
    location,
    plan,
    pruning,
    reports,
    shapes,
    studies,
    wildcards,
)
from tightrope.plan.config_checks import checked
from tightrope.plan.location import Location
from tightrope.plan.wildcards import of_wildcards, one_of
from tightrope.studies.table import STUDIES
from tightrope.terminal import decision, plugin
from tightrope.terminal.ended import EndedJobs
from tightrope.variants import CALIBRATION, METHODS, SCHEMES, device_of

LOCATION = or_exit(Location.of, workflow, PROJECT)
SCRIPTS = LOCATION.scripts
# the report before this run, which a file server with another clock may date later than its begin
REPORT_BEFORE = file_state("reports/summary.html")
# by --default-storage-provider: the files of the user and the reports stay here
STORED = LOCATION.stored
# with storage alone: before a path that is `local` Snakemake does not put the prefix of a module
kept_here = local if STORED else lambda path: path
# at least --cores: with more --cores than CPUs, two measurements would otherwise run in parallel
WHOLE_MACHINE = max(os.cpu_count(), workflow.resource_settings.cores or 1)
code_of = partial(code_digest, SCRIPTS)

hosts.pass_on(main=workflow.is_main_process)
# another dictionary: in a module this one belongs to the workflow that imports it
config = or_exit(checked, config, look=workflow.is_main_process)
PLAN = plan.make_plan(config, failed=known_reasons())
# a resource, not a param: changing how long a job may wait makes no record stale
QUIET_SECONDS = config["latency"]["quiet_seconds"]
GRAPHS = job_inputs.graphs_of(config, PLAN.jobs)
SEARCHES = job_inputs.searches_of(config, PLAN.jobs)
CONSTRAINT = wildcards.default_constraint(workflow)
CPU_CONSTRAINT = hosts.constraint_of(config, CONSTRAINT, "cpu")
ENDED_JOBS = EndedJobs(workflow)
plugin.start_terminal(workflow, config["models"], ENDED_JOBS, module=LOCATION.module)
begin.begin_with_dag(workflow, config, PLAN, LOCATION)

os.environ.setdefault(hosts.ATTEMPTS, "1")
cores.let_threads_sleep()


# A record in Snakemake's own report, with the caption of its kind.
def reported(path, category, caption=None):
    labels = {name: f"{{{name}}}" for name in ("model", "variant", "device")}
    return report(
        path,
        caption=f"captions/{caption or re.split('[./]', path)[-2]}.rst",
        category=category,
        labels={name: label for name, label in labels.items() if label in path},
    )


# Functions of the wildcards, for the rules: `of(function, ...)` is function(config, ..., wildcards).
def of(function, *arguments):
    return of_wildcards(function, config, *arguments)


def of_plan(function, *arguments):
    return of_wildcards(function, PLAN, *arguments)


def given(function, *arguments):
    return of_wildcards(LOCATION.given, function, config, *arguments)


def at_place(function):
    return lambda wildcards: function(place_of(wildcards))


place_of = of(wildcards.place_of)
ENVIRONMENTS = {"cpu": "cpu", "cuda": "gpu"}
gpus = at_place(lambda place: int(device_of(place) == "cuda"))
environment = at_place(lambda place: f"../envs/{ENVIRONMENTS[device_of(place)]}.yaml")
constraint = at_place(partial(hosts.constraint_of, config, CONSTRAINT))
host, numerics = at_place(PLAN.host.__getitem__), at_place(PLAN.numerics.__getitem__)
last_attempt = of_wildcards(hosts.last_attempt, workflow)
# resources of jobs where the variant runs, and of those that time it
PLACED = {"gpu": gpus, "constraint": constraint, "last_attempt": last_attempt}
TIMED = {**PLACED, "mem_mb": 16000, "quiet_seconds": QUIET_SECONDS}

# take a function that names the variants which a job runs
code_with = partial(of_wildcards, job_params.variants_code, SCRIPTS)
libraries_with = partial(of_wildcards, job_params.variants_libraries)
own_variant = plan.own_variant
with_baseline = of_plan(plan.with_baseline)
all_raced = of_plan(plan.raced, "{variant}")
all_of_family = of_plan(plan.of_family, "{variant}")

# take libraries, a key or a path
encoding_with = partial(of, job_inputs.encoding_libraries)
of_model = partial(of, wildcards.of_model)
of_raced = partial(of_plan, plan.raced)
of_family = partial(of_plan, plan.of_family)
of_members = partial(of_plan, plan.of_members)
paths_of = partial(of_wildcards, wildcards.paths)

# inputs of what times a model, or an engine of it, and params of what runs one
TIMED_MODEL = {
    "checkpoint": "artifacts/{model}/checkpoint/checkpoint.json",
    "data": "artifacts/{model}/splits/timing.json",
}
TIMED_ENGINE = {"engine": "artifacts/{model}/engines/{variant}/engine.json", **TIMED_MODEL}
RUN = {"host": host, "max_sequence": of_model("max_sequence"), "threads": config["threads"]}


wildcard_constraints:
    model=one_of(config["models"]),
    variant=one_of({str(variant) for _, variant in PLAN.jobs}),
    device=one_of(PLAN.host),
    rest=one_of(plan.variant_suffixes(PLAN)),
    scheme=one_of(SCHEMES),
    split=one_of(SPLITS),
    graph=job_inputs.GRAPH,
    calibration=CALIBRATION,
    method=one_of(METHODS),
    samples="[1-9][0-9]*",
    asked=distillation.ASKED,
    structures="[a-z0-9_-]+",

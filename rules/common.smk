import os
import sys
from functools import partial
from itertools import product

# of this file, also where another workflow imports this one
PROJECT = os.path.dirname(workflow.current_basedir.get_path_or_uri(secret_free=True))
sys.path.insert(0, f"{PROJECT}/scripts")

from tightrope.artifacts.failures import known_reasons
from tightrope.artifacts.files import file_state
from tightrope.artifacts.provenance import code_digest, library_versions
from tightrope.data.splits import SPLITS
from tightrope.engine_table import ENGINES
from tightrope.errors import or_exit
from tightrope.machine import cores
from tightrope.plan import (
    announce,
    begin,
    code,
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
from tightrope.plan.config import checked
from tightrope.plan.location import Location
from tightrope.plan.wildcards import of_wildcards, one_of
from tightrope.studies.table import STUDIES
from tightrope.terminal import decision, plugin
from tightrope.terminal.ended import EndedJobs
from tightrope.variants import CALIBRATION, METHODS, SCHEMES

LOCATION = or_exit(Location.of, workflow, PROJECT)
SCRIPTS = LOCATION.scripts
# the report before this run, which a file server with another clock may date later than its begin
REPORT_BEFORE = file_state("reports/summary.html")
# by --default-storage-provider: the files of the user and the reports stay here
STORED = LOCATION.stored
# only there: Snakemake puts no prefix of a module before a path that is `local`
kept_here = local if STORED else lambda path: path
# at least --cores: with more --cores than CPUs, two measurements would otherwise run in parallel
WHOLE_MACHINE = max(os.cpu_count(), workflow.resource_settings.cores or 1)
code_of = partial(code_digest, SCRIPTS)
versions_of = library_versions

hosts.pass_on(main=workflow.is_main_process)
# another dictionary: in a module this one belongs to the workflow that imports it
config = or_exit(checked, config, f"{PROJECT}/config/schema.yaml", look=workflow.is_main_process)
PLAN = plan.make_plan(config, failed=known_reasons())
# a resource, not a param: changing how long a job may wait makes no record stale
QUIET_SECONDS = config["latency"]["quiet_seconds"]
ALL_SPLITS = [*product(PLAN.models, SPLITS)]
CACHES = job_inputs.caches_of(PLAN.jobs)
GRAPHS = job_inputs.graphs_of(config, PLAN.jobs)
SEARCHES = job_inputs.searches_of(config, PLAN.jobs)
CONSTRAINT = wildcards.default_constraint(workflow)
CPU_CONSTRAINT = hosts.constraint_of(config, CONSTRAINT, "cpu")
ENDED_JOBS = EndedJobs(workflow)
plugin.start_terminal(workflow, config["models"], ENDED_JOBS, module=LOCATION.module)
begin.begin_with_dag(workflow, config, PLAN, LOCATION)
CONFIGURATION = reports.configuration_files(workflow)
OVERRIDES = reports.overrides(workflow)

os.environ.setdefault(hosts.ATTEMPTS, "1")
cores.let_threads_sleep()


# functions of the wildcards, for the rules
engine_code = partial(code.build_code, SCRIPTS)
data_code = of_wildcards(code.data_code, SCRIPTS, config)
checkpoint_code = of_wildcards(code.checkpoint_code, SCRIPTS, config)
training_code = of_wildcards(code.training_code, SCRIPTS, config)
teacher_code = of_wildcards(code.teacher_code, SCRIPTS, config)

# take a function that names the variants which a job runs
code_with = partial(of_wildcards, code.variants_code, SCRIPTS)
libraries_with = partial(of_wildcards, job_params.variants_libraries)
own_variant = plan.own_variant
with_baseline = partial(plan.with_baseline, PLAN)
all_raced = partial(plan.raced, PLAN, "{variant}")
all_of_family = partial(plan.of_family, PLAN, "{variant}")
of_table = partial(pruning.variants_of_table, config)
of_choice = partial(pruning.variants_of_choice, config)

build_inputs = of_wildcards(job_inputs.build_inputs, config)
build_libraries = of_wildcards(job_params.build_libraries, config)

local_data_files = of_wildcards(LOCATION.given, job_inputs.local_data_files, config)
training_examples = of_wildcards(job_inputs.training_examples, config)
teacher_inputs = of_wildcards(LOCATION.given, distillation.teacher_inputs, config)
taught_inputs = of_wildcards(distillation.taught_inputs, config)
local_checkpoint_files = of_wildcards(LOCATION.given, job_inputs.local_checkpoint_files, config)
judged_input = of_wildcards(job_inputs.judged_input)
requests_of_variant = of_wildcards(job_inputs.requests_of_variant)
quantize_inputs = of_wildcards(job_inputs.quantize_inputs)
collapse_inputs = of_wildcards(job_inputs.collapse_inputs, config, PLAN.baselines)
counted_inputs = of_wildcards(job_inputs.counted_inputs, config, PLAN.variants)
graph_inputs = of_wildcards(job_inputs.graph_inputs, SEARCHES)
baseline_engine = of_wildcards(plan.baseline_engine, PLAN)
reference_engine = of_wildcards(plan.reference_engine, PLAN)

of_place = partial(of_wildcards, wildcards.of_place)
place_of_training = of_wildcards(wildcards.place_of_training, config)
constraint_at = partial(hosts.constraint_of, config, CONSTRAINT)
gpus_of_device = of_place(wildcards.place_of_device, wildcards.gpus)
gpus_of_variant = of_place(wildcards.place_of_variant, wildcards.gpus)
peaks_of_variant = of_place(wildcards.place_of_variant, job_inputs.peaks_file)
gpus_of_training = of_place(place_of_training, wildcards.gpus)
environment_of_device = of_place(wildcards.place_of_device, wildcards.environment)
environment_of_variant = of_place(wildcards.place_of_variant, wildcards.environment)
environment_of_training = of_place(place_of_training, wildcards.environment)
constraint_of_device = of_place(wildcards.place_of_device, constraint_at)
constraint_of_variant = of_place(wildcards.place_of_variant, constraint_at)
constraint_of_training = of_place(place_of_training, constraint_at)
host_of_device = of_place(wildcards.place_of_device, PLAN.host.__getitem__)
host_of_variant = of_place(wildcards.place_of_variant, PLAN.host.__getitem__)
host_of_training = of_place(place_of_training, PLAN.host.__getitem__)
numerics_of_device = of_place(wildcards.place_of_device, PLAN.numerics.__getitem__)
numerics_of_variant = of_place(wildcards.place_of_variant, PLAN.numerics.__getitem__)

shapes_of_model = of_wildcards(shapes.shapes_of_model, config)
sizes_in_words = of_wildcards(shapes.sizes_in_words, config)
full_shapes_of_model = of_wildcards(shapes.full_shapes_of_model, config)
# one for all jobs, each of which keeps its params in memory
latency_settings = job_params.latency_settings(config)
latency_of_model = of_wildcards(job_params.latency_of_model, config)
repair_of = of_wildcards(job_params.repair_of, config)
percentile_of = of_wildcards(job_params.percentile_of, config)
streams_of_variant = of_wildcards(job_params.streams_of, config)
bundle_programs = of_wildcards(LOCATION.given, partial(job_inputs.bundle_programs, SCRIPTS), config)
teacher_request = of_wildcards(distillation.teacher_request, config)
teacher_libraries = of_wildcards(distillation.teacher_libraries, config)
recipe_to_measure = of_wildcards(studies.recipe_to_measure, config)
prune_of_model = of_wildcards(pruning.prune_of_model, config)
structure_of_model = of_wildcards(pruning.structure_of_model, config)
structure_inputs = of_wildcards(pruning.structure_inputs, config)
asked_of_model = of_wildcards(pruning.asked_of_model, config)
engine_of_model = of_wildcards(pruning.engine_of_model, config)
engine_of_table = of_wildcards(pruning.engine_of_table, config)
table_libraries = of_wildcards(pruning.structure_libraries, of_table)
choice_libraries = of_wildcards(pruning.structure_libraries, of_choice)
host_of_choice = of_wildcards(pruning.host_of_choice, PLAN, config)
goal_of_race = of_wildcards(job_params.goal_of_race, config)
baseline_of_device = of_wildcards(plan.baseline_of_device, PLAN)
limits_of = of_wildcards(job_params.limits_of, config)
deciding_sizes = of_wildcards(job_params.deciding_sizes, config)
data_libraries = of_wildcards(job_params.data_libraries, config)
checkpoint_libraries = of_wildcards(job_params.checkpoint_libraries, config)
prepared_of_run = of_wildcards(job_inputs.prepared, config, PLAN.jobs)
prepared_files = of_wildcards(job_inputs.prepared_files, config, PLAN.jobs)
last_attempt = of_wildcards(hosts.last_attempt, workflow)

# take an engine, libraries, a split, a key, a path or a study, and return a function of the wildcards
inputs_of = partial(of_wildcards, job_inputs.of_build, job_inputs.engine_inputs, config)
options_of = partial(of_wildcards, job_inputs.of_build, job_params.engine_options, config)
encoding_with = partial(of_wildcards, job_inputs.encoding_libraries, config)
size_of = partial(of_wildcards, job_params.size_of, config)
of_model = partial(of_wildcards, wildcards.of_model, config)
of_raced = partial(of_wildcards, plan.raced, PLAN)
of_family = partial(of_wildcards, plan.of_family, PLAN)
of_members = partial(of_wildcards, plan.of_members, PLAN)
paths_of = partial(of_wildcards, wildcards.paths)
code_of_study = partial(of_wildcards, code.study_code, SCRIPTS)
libraries_of_study = partial(of_wildcards, job_params.study_libraries)
settings_of_study = partial(of_wildcards, studies.study_settings, config)


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

import os
import sys
from functools import partial

# of this file, also where another workflow imports this one
PROJECT = os.path.dirname(workflow.current_basedir.get_path_or_uri(secret_free=True))
sys.path.insert(0, f"{PROJECT}/scripts")

from tightrope.artifacts.files import file_state
from tightrope.artifacts.provenance import code_digest, library_versions
from tightrope.data.splits import SPLITS
from tightrope.jobs import ended
from tightrope.plan import (
    announce,
    begin,
    bundles,
    causes,
    code,
    columns,
    continuing,
    devices,
    distillation,
    families,
    family_jobs,
    graphs,
    hosts,
    idleness,
    job_inputs,
    job_params,
    plan,
    planned_on,
    preparation,
    reports,
    shapes,
    stored,
    structures,
    throughput,
    training,
    wildcard_functions,
)
from tightrope.plan.config import checked_or_exit
from tightrope.plan.location import location_or_exit
from tightrope.plan.patterns import one_of
from tightrope.plan.wildcard_functions import of_wildcards
from tightrope.terminal import decision, start, stopping
from tightrope.terminal.ended import EndedJobs
from tightrope.variants import CALIBRATION, METHODS, SCHEMES

LOCATION = location_or_exit(workflow, PROJECT)
SCRIPTS = LOCATION.scripts
# the report before this run, which a file server with another clock may date later than its begin
REPORT_BEFORE = file_state("reports/summary.html")
# by --default-storage-provider: the files of the user and the reports stay here
STORED = LOCATION.stored
# only there: Snakemake puts no prefix of a module before a path that is `local`
kept_here = local if STORED else stored.as_it_is
# at least --cores: with more --cores than CPUs, two measurements would otherwise run in parallel
WHOLE_MACHINE = max(os.cpu_count(), workflow.resource_settings.cores or 1)
code_of = partial(code_digest, SCRIPTS)
versions_of = library_versions

planned_on.pass_on(main=workflow.is_main_process)
# another dictionary: in a module this one belongs to the workflow that imports it
config = checked_or_exit(workflow, config, f"{PROJECT}/config/schema.yaml")
PLAN = plan.make_plan(config, failed=ended.known())
# a resource, not a param: changing how long a job may wait makes no record stale
QUIET_SECONDS = config["latency"]["quiet_seconds"]
JOBS = columns.columns(PLAN.jobs)
TRAFFIC_JOBS = columns.columns(PLAN.traffic)
THROUGHPUT_JOBS = columns.columns(PLAN.throughput)
PROFILE_JOBS = columns.columns(PLAN.profile)
IDLENESS_JOBS = columns.columns(PLAN.idleness)
CAUSES_JOBS = columns.columns(PLAN.causes)
ACTIVATION_JOBS = columns.columns(PLAN.activations)
RACES = columns.race_columns(PLAN.jobs)
CHILDREN = families.children_of(config)
FAMILIES = families.family_columns(config, PLAN.jobs)
AUDITED_JOBS = columns.columns(plan.audited(PLAN.jobs))
SEARCHES = columns.search_columns(config, PLAN.jobs)
ALL_SPLITS = columns.product(PLAN.models, SPLITS)
CACHES = job_inputs.cache_columns(PLAN.jobs)
GRAPHS = graphs.graph_columns(config, PLAN.jobs)
CONSTRAINT = devices.default_constraint(workflow)
CPU_CONSTRAINT = hosts.constraint_of(config, CONSTRAINT, "cpu")
start.start_terminal(workflow, module=LOCATION.module)
begin.begin_with_dag(workflow, config, PLAN, LOCATION)
ENDED_JOBS = EndedJobs(workflow)
CONFIGURATION = reports.configuration_files(workflow)
OVERRIDES = reports.overrides(workflow)

os.environ.setdefault(planned_on.ATTEMPTS, "1")


# functions of the wildcards, for the rules
engine_code = partial(code.build_code, SCRIPTS)
data_code = of_wildcards(code.data_code, SCRIPTS, config)
checkpoint_code = of_wildcards(code.checkpoint_code, SCRIPTS, config)
training_code = of_wildcards(code.training_code, SCRIPTS, config)
teacher_code = of_wildcards(code.teacher_code, SCRIPTS, config)
audit_code = of_wildcards(code.variant_code, SCRIPTS, "audit_variant.py")
latency_code = of_wildcards(code.latency_code, SCRIPTS, PLAN)
comparison_code = of_wildcards(code.variant_code, SCRIPTS, "measure_latency.py")
accuracy_code = of_wildcards(code.variant_code, SCRIPTS, "measure_accuracy.py")
race_code = of_wildcards(code.race_code, SCRIPTS, PLAN)
family_code = of_wildcards(family_jobs.family_code, SCRIPTS, CHILDREN, PLAN.variants)
traffic_code = of_wildcards(code.variant_code, SCRIPTS, "measure_traffic.py")
profile_code = of_wildcards(code.variant_code, SCRIPTS, "measure_profile.py")
throughput_code = of_wildcards(code.variant_code, SCRIPTS, "measure_throughput.py")
idleness_code = of_wildcards(code.variant_code, SCRIPTS, "measure_idleness.py")
build_inputs = of_wildcards(causes.build_inputs, config)
build_libraries = of_wildcards(causes.build_libraries, config)
causes_code = of_wildcards(code.variant_code, SCRIPTS, "verify_causes.py")

local_data_files = of_wildcards(LOCATION.given, job_inputs.local_data_files, config)
training_examples = of_wildcards(job_inputs.training_examples, config)
teacher_inputs = of_wildcards(LOCATION.given, distillation.teacher_inputs, config)
taught_inputs = of_wildcards(distillation.taught_inputs, config)
local_checkpoint_files = of_wildcards(LOCATION.given, job_inputs.local_checkpoint_files, config)
audit_input = of_wildcards(job_inputs.audit_input)
peaks_of_variant = of_wildcards(job_inputs.peaks_of_variant)
requests_of_variant = of_wildcards(job_inputs.requests_of_variant)
quantize_inputs = of_wildcards(job_inputs.quantize_inputs)
audited_inputs = of_wildcards(job_inputs.audited_inputs, config)
counted_inputs = of_wildcards(job_inputs.counted_inputs, config, PLAN.variants)
graph_inputs = of_wildcards(graphs.graph_inputs, SEARCHES)
baseline_engine = of_wildcards(plan.baseline_engine, PLAN)
reference_engine = of_wildcards(plan.reference_engine, PLAN)
raced_engines = of_wildcards(plan.raced, PLAN, "artifacts/{model}/engines/{variant}/engine.json")
raced_latencies = of_wildcards(plan.raced, PLAN, "reports/{model}/{variant}.latency.json")
raced_accuracies = of_wildcards(plan.raced, PLAN, "reports/{model}/{variant}.accuracy.json")
raced_logits = of_wildcards(plan.raced, PLAN, "reports/{model}/{variant}.logits.npy")

of_family = partial(of_wildcards, families.of_variants, CHILDREN, PLAN.variants)
of_members = partial(of_wildcards, families.of_members, CHILDREN, PLAN.variants)

gpus_of_device = of_wildcards(devices.gpus_of_device)
gpus_of_variant = of_wildcards(devices.gpus_of_variant)
environment_of_device = of_wildcards(devices.environment_of_device)
environment_of_variant = of_wildcards(devices.environment_of_variant)
gpus_of_training = of_wildcards(devices.gpus_of_training, config)
environment_of_training = of_wildcards(devices.environment_of_training, config)
constraint_of_device = of_wildcards(devices.constraint_of_device, config, CONSTRAINT)
constraint_of_variant = of_wildcards(devices.constraint_of_variant, config, CONSTRAINT)
constraint_of_training = of_wildcards(devices.constraint_of_training, config, CONSTRAINT)
host_of_device = of_wildcards(devices.host_of_device, PLAN)
host_of_variant = of_wildcards(devices.host_of_variant, PLAN)
host_of_training = of_wildcards(devices.host_of_training, PLAN, config)
numerics_of_device = of_wildcards(devices.numerics_of_device, PLAN)
numerics_of_variant = of_wildcards(devices.numerics_of_variant, PLAN)

shapes_of_model = of_wildcards(shapes.shapes_of_model, config)
full_shapes_of_model = of_wildcards(shapes.full_shapes_of_model, config)
# one for all jobs, each of which keeps its params in memory
latency_settings = job_params.latency_settings(config)
repair_of = of_wildcards(job_params.repair_of, config)
percentile_of = of_wildcards(job_params.percentile_of, config)
streams_of_variant = of_wildcards(job_params.streams_of, config)
traffic_settings = of_wildcards(job_params.traffic_settings, config)
throughput_settings = of_wildcards(throughput.throughput_settings, config)
idleness_settings = of_wildcards(idleness.idleness_settings, config)
idleness_shape = of_wildcards(idleness.idleness_shape, config)
bundle_programs = of_wildcards(LOCATION.given, partial(bundles.bundle_programs, SCRIPTS), config)
teacher_request = of_wildcards(distillation.teacher_request, config)
teacher_libraries = of_wildcards(distillation.teacher_libraries, config)
recipe_to_measure = of_wildcards(training.recipe_to_measure, config)
prune_of_model = of_wildcards(structures.prune_of_model, config)
structure_of_model = of_wildcards(structures.structure_of_model, config)
structure_inputs = of_wildcards(structures.structure_inputs, config)
asked_of_model = of_wildcards(structures.asked_of_model, config)
engine_of_model = of_wildcards(structures.engine_of_model, config)
engine_of_table = of_wildcards(structures.engine_of_table, config)
structures_code = of_wildcards(structures.structures_code, SCRIPTS, config)
choice_code = of_wildcards(structures.choice_code, SCRIPTS, config)
table_libraries = of_wildcards(structures.table_libraries, config)
choice_libraries = of_wildcards(structures.choice_libraries, config)
host_of_choice = of_wildcards(structures.host_of_choice, PLAN, config)
goal_of_race = of_wildcards(job_params.goal_of_race, config)
baseline_of_device = of_wildcards(plan.baseline_of_device, PLAN)
limits_of = of_wildcards(job_params.limits_of, config)
deciding_sizes = of_wildcards(job_params.deciding_sizes, config)
data_libraries = of_wildcards(job_params.data_libraries, config)
checkpoint_libraries = of_wildcards(job_params.checkpoint_libraries, config)
accuracy_libraries = of_wildcards(job_params.accuracy_libraries)
traffic_libraries = of_wildcards(job_params.traffic_libraries)
latency_libraries = of_wildcards(job_params.latency_libraries, PLAN)
race_libraries = of_wildcards(job_params.race_libraries, PLAN)
family_libraries = of_wildcards(family_jobs.family_libraries, CHILDREN, PLAN.variants)
prepared_of_run = of_wildcards(preparation.prepared, config, PLAN.jobs)
prepared_files = of_wildcards(preparation.prepared_files, config, PLAN.jobs)
last_attempt = of_wildcards(planned_on.last_attempt, workflow)

# take an engine, libraries, a split, a key or a path, and return a function of the wildcards
inputs_of = partial(of_wildcards, job_inputs.engine_inputs, config)
options_of = partial(of_wildcards, job_params.engine_options, config)
encoding_with = partial(of_wildcards, job_inputs.encoding_libraries, config)
size_of = partial(of_wildcards, job_params.size_of, config)
of_model = partial(of_wildcards, wildcard_functions.of_model, config)
paths_of = partial(of_wildcards, columns.paths)


wildcard_constraints:
    model=one_of(config["models"]),
    variant=one_of(set(JOBS["variant"])),
    device=one_of(PLAN.host),
    rest=one_of(plan.variant_suffixes(PLAN)),
    scheme=one_of(SCHEMES),
    split=one_of(SPLITS),
    graph=graphs.GRAPH,
    calibration=CALIBRATION,
    method=one_of(METHODS),
    samples="[1-9][0-9]*",
    asked=distillation.ASKED,
    structures="[a-z0-9_-]+",

import os
import sys
import time
from functools import partial

sys.path.insert(0, f"{workflow.basedir}/scripts")

from tightrope.artifacts.provenance import code_digest, library_versions
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.plan import graphs as graph_jobs
from tightrope.plan import job_inputs, job_params, plan, shapes
from tightrope.plan import training as training_plan
from tightrope.terminal import decision
from tightrope.variants import CALIBRATION, DEVICES, METHODS, SCHEMES, either

# relative: inputs are compared by path, and the project may be moved
SCRIPTS = os.path.relpath(f"{workflow.basedir}/scripts")
STARTED = time.time()
# with more --cores than there are, two measurements would run at once
WHOLE_MACHINE = max(os.cpu_count(), workflow.resource_settings.cores or 1)
code_of = partial(code_digest, SCRIPTS)
versions_of = library_versions

config.update(plan.checked_or_exit(config, f"{workflow.basedir}/config/schema.yaml"))
PLAN = plan.make_plan(config)
# a resource: how long a job may wait before it measures makes no record stale
QUIET_SECONDS = config["latency"]["quiet_seconds"]
JOBS = plan.columns(PLAN.jobs)
TRAFFIC_JOBS = plan.columns(PLAN.traffic)
ACTIVATION_JOBS = plan.columns(PLAN.activations)
RACES = plan.race_columns(PLAN.jobs)
AUDITED_JOBS = plan.columns(plan.audited(PLAN.jobs))
SEARCHES = plan.search_columns(config, PLAN.jobs)
GRAPHS = graph_jobs.graph_columns(config, PLAN.jobs)
RUN_LOCK = plan.begin_run(workflow, config, PLAN)

os.environ.setdefault(plan.ATTEMPTS, "1")


def local_data_files(wildcards):
    return data_sources.local_files(**job_inputs.data_source(config, wildcards.model))


def local_checkpoint_files(wildcards):
    return checkpoint_source.local_files(config["models"][wildcards.model]["checkpoint"])


def shapes_of_model(wildcards):
    return shapes.shapes_of(config, wildcards.model)


def data_libraries(wildcards):
    return data_sources.libraries(**job_inputs.data_source(config, wildcards.model))


def checkpoint_libraries(wildcards):
    return checkpoint_source.libraries(config["models"][wildcards.model]["checkpoint"])


def data_code(wildcards):
    return code_of("prepare_data.py", *job_params.data_modules(config, wildcards))


def checkpoint_code(wildcards):
    return code_of("prepare_checkpoint.py", *job_params.checkpoint_modules(config, wildcards))


def training_code(wildcards):
    return code_of("train_model.py", *job_params.classifier_modules(config, wildcards))


def inputs_of(engine):
    return partial(job_inputs.engine_inputs, config, engine)


def encoding_with(*names):
    return partial(job_inputs.encoding_libraries, config, names)


def options_of(engine):
    return partial(job_params.engine_options, config, engine)


def quantize_inputs(wildcards):
    return job_inputs.quantize_inputs(wildcards)


def graph_inputs(wildcards):
    return graph_jobs.graph_inputs(SEARCHES, wildcards)


def repair_of(wildcards):
    return job_params.repair_of(config, wildcards)


def percentile_of(wildcards):
    return job_params.percentile_of(config, wildcards)


def gpus_of_device(wildcards):
    return job_params.gpus(wildcards.device)


def gpus_of_variant(wildcards):
    return job_params.gpus(job_params.device_of(wildcards.variant))


def numerics_of_device(wildcards):
    return PLAN.numerics[wildcards.device]


def numerics_of_variant(wildcards):
    return PLAN.numerics[job_params.device_of(wildcards.variant)]


def host_of_variant(wildcards):
    return PLAN.host[job_params.device_of(wildcards.variant)]


def gpus_of_training(wildcards):
    return job_params.gpus(training_plan.device_to_train_on(config, wildcards.model))


def environment_of_training(wildcards):
    return job_params.environment(training_plan.device_to_train_on(config, wildcards.model))


def host_of_training(wildcards):
    return PLAN.host[training_plan.device_to_train_on(config, wildcards.model)]


def recipe_to_measure(wildcards):
    return training_plan.recipe_to_measure(config, wildcards.model)


def environment_of_device(wildcards):
    return job_params.environment(wildcards.device)


def environment_of_variant(wildcards):
    return job_params.environment(job_params.device_of(wildcards.variant))


def audit_input(wildcards):
    return job_inputs.audit_input(wildcards)


def audited_inputs(wildcards):
    return job_inputs.audited_inputs(config, wildcards)


def audit_code(wildcards):
    return code_of("audit_variant.py", *job_params.engine_modules(wildcards.variant))


def baseline_engine(wildcards):
    return plan.baseline_engine(PLAN, wildcards.model, wildcards.variant)


def reference_engine(wildcards):
    return plan.reference_engine(PLAN, wildcards.model, wildcards.variant)


def baseline_variant(wildcards):
    return plan.baseline_of(PLAN, wildcards.model, wildcards.variant)


def latency_code(wildcards):
    variants = (wildcards.variant, baseline_variant(wildcards))
    return code_of("measure_latency.py", *job_params.engine_modules(*variants))


def comparison_code(wildcards):
    return code_of("measure_latency.py", *job_params.engine_modules(wildcards.variant))


def latency_settings(wildcards):
    return job_params.latency_settings(config)


def raced_engines(wildcards):
    return plan.raced(PLAN, wildcards, "artifacts/{model}/engines/{variant}/engine.json")


def raced_latencies(wildcards):
    return plan.raced(PLAN, wildcards, "reports/{model}/{variant}.latency.json")


def raced_accuracies(wildcards):
    return plan.raced(PLAN, wildcards, "reports/{model}/{variant}.accuracy.json")


def race_code(wildcards):
    variants = plan.raced(PLAN, wildcards, "{variant}")
    return code_of("race_finalists.py", *job_params.engine_modules(*variants))


def race_libraries(wildcards):
    return job_params.engine_libraries(*plan.raced(PLAN, wildcards, "{variant}"))


def host_of_device(wildcards):
    return PLAN.host[wildcards.device]


def baseline_of_device(wildcards):
    return PLAN.baselines[wildcards.model][wildcards.device]


def accuracy_code(wildcards):
    return code_of("measure_accuracy.py", *job_params.engine_modules(wildcards.variant))


def latency_libraries(wildcards):
    return job_params.engine_libraries(wildcards.variant, baseline_variant(wildcards))


def accuracy_libraries(wildcards):
    return job_params.engine_libraries(wildcards.variant)


def traffic_code(wildcards):
    return code_of("measure_traffic.py", *job_params.engine_modules(wildcards.variant))


def traffic_settings(wildcards):
    return job_params.traffic_settings(config, wildcards.model)


def traffic_libraries(wildcards):
    return job_params.traffic_libraries(wildcards.variant)


def last_attempt(wildcards, attempt):
    return plan.is_last_attempt(workflow, attempt)


wildcard_constraints:
    model=either(config["models"]),
    variant=either(set(JOBS["variant"])),
    device=either(DEVICES),
    rest=either(plan.rests(PLAN)),
    scheme=either(SCHEMES),
    graph=graph_jobs.GRAPH,
    calibration=CALIBRATION,
    method=either(METHODS),
    samples="[1-9][0-9]*",

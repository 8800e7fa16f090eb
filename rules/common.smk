import os
import sys
import time
from functools import partial

sys.path.insert(0, f"{workflow.basedir}/scripts")

from tightrope import checkpoint, data, plan, run
from tightrope.provenance import code_digest, library_versions
from tightrope.variants import DEVICES, METHODS, either

# relative: inputs are compared by path, and the project may be moved
SCRIPTS = os.path.relpath(f"{workflow.basedir}/scripts")
STARTED = time.time()
# with more --cores than there are, two measurements would run at once
WHOLE_MACHINE = max(os.cpu_count(), workflow.resource_settings.cores or 1)
code_of = partial(code_digest, SCRIPTS)
versions_of = library_versions

config.update(plan.checked_or_exit(config, f"{workflow.basedir}/config/schema.yaml"))
PLAN = plan.make_plan(config)
TRAFFIC = plan.traffic_settings(config)
RUN_LOCK = plan.begin_run(workflow, config, PLAN)

os.environ.setdefault(plan.ATTEMPTS, "1")


def local_data_files(wildcards):
    return data.local_files(config["models"][wildcards.model]["data"])


def local_checkpoint_files(wildcards):
    return checkpoint.local_files(config["models"][wildcards.model]["checkpoint"])


def data_libraries(wildcards):
    return data.libraries(config["models"][wildcards.model]["data"])


def checkpoint_libraries(wildcards):
    return checkpoint.libraries(config["models"][wildcards.model]["checkpoint"])


def openvino_input(wildcards):
    return plan.openvino_input(wildcards.model, wildcards.device, wildcards.rest)


def onnxruntime_source(wildcards):
    return plan.onnxruntime_source(wildcards.model, wildcards.device, wildcards.rest)


def baseline_engine(wildcards):
    return plan.baseline_engine(wildcards.model, wildcards.variant)


def latency_code(wildcards):
    return code_of("measure_latency.py", *plan.engine_modules(wildcards.variant, baseline=True))


def accuracy_code(wildcards):
    return code_of("measure_accuracy.py", *plan.engine_modules(wildcards.variant))


def latency_libraries(wildcards):
    return plan.engine_libraries(wildcards.variant, baseline=True)


def accuracy_libraries(wildcards):
    return plan.engine_libraries(wildcards.variant)


def traffic_code(wildcards):
    return code_of("measure_traffic.py", *plan.engine_modules(wildcards.variant))


def traffic_libraries(wildcards):
    return plan.traffic_libraries(wildcards.variant)


def last_attempt(wildcards, attempt):
    return plan.is_last_attempt(workflow, attempt)


wildcard_constraints:
    model=either(config["models"]),
    variant=either(map(str, PLAN.variants)),
    device=either(DEVICES),
    rest=either(plan.rests(PLAN)),
    scheme="u8s8|s8s8",
    method=either(METHODS),
    samples="[1-9][0-9]*",

import os
import sys
from functools import partial

# of this file, also where another workflow imports this one
PROJECT = os.path.dirname(workflow.current_basedir.get_path_or_uri(secret_free=True))
sys.path.insert(0, f"{PROJECT}/scripts")

from tightrope.artifacts.failures import known_reasons
from tightrope.artifacts.files import file_state
from tightrope.data.splits import SPLITS
from tightrope.engine_table import ENGINES
from tightrope.errors import or_exit
from tightrope.machine import cores
from tightrope.plan import announce, begin, continuing, hosts, job_inputs, jobs, plan, reports
from tightrope.plan.config_checks import checked
from tightrope.plan.location import Location, declare_packs
from tightrope.studies.table import STUDIES
from tightrope.terminal import decision, plugin
from tightrope.terminal.ended import EndedJobs

LOCATION = or_exit(Location.of, workflow, PROJECT)
# the report before this run, which a file server with another clock may date later than its begin
REPORT_BEFORE = file_state("reports/summary.html")
# with --default-storage-provider the files of the user and the reports stay here; only there, as
# Snakemake puts no prefix of a module before a path that is `local`
kept_here = local if LOCATION.stored else lambda path: path
# at least --cores: with more --cores than CPUs, two measurements would otherwise run in parallel
WHOLE_MACHINE = max(os.cpu_count(), workflow.resource_settings.cores or 1)

hosts.pass_on(main=workflow.is_main_process)
# another dictionary: in a module this one belongs to the workflow that imports it
config = or_exit(checked, config, look=workflow.is_main_process)
PLAN = plan.make_plan(config, failed=known_reasons())
JOBS = jobs.Table(config, PLAN, LOCATION, workflow)
ENDED_JOBS = EndedJobs(workflow)
plugin.start_terminal(workflow, config["models"], ENDED_JOBS, module=LOCATION.module)
begin.begin_with_dag(workflow, config, PLAN, LOCATION)

cores.let_threads_sleep()

last_attempt = partial(hosts.last_attempt, workflow)
# resources of jobs that run where their variant or device is, and of those that time it
PLACED = {name: JOBS.setting(name) for name in ("gpu", "constraint")}
PLACED |= {"last_attempt": last_attempt}
# a resource, not a setting: changing how long a job may wait makes no record stale
TIMED = {**PLACED, "mem_mb": 16000, "quiet_seconds": config["latency"]["quiet_seconds"]}
# of those whose times are of a CPU
ON_CPU = {"constraint": JOBS.setting("constraint", device="cpu"), "last_attempt": last_attempt}
# inputs of what times a model, or an engine of it
TIMED_MODEL = {
    "checkpoint": "artifacts/{model}/checkpoint/checkpoint.json",
    "data": "artifacts/{model}/splits/timing.json",
}
TIMED_ENGINE = {"engine": "artifacts/{model}/engines/{variant}/engine.json", **TIMED_MODEL}


# A record in Snakemake's own report, with the caption of its kind.
def reported(path, category, caption=None):
    labels = {name: f"{{{name}}}" for name in ("model", "variant", "device")}
    return report(
        path,
        caption=f"captions/{caption or path.split('.')[-2]}.rst",
        category=category,
        labels={name: label for name, label in labels.items() if label in path},
    )


wildcard_constraints:
    **plan.constraints(config, PLAN),

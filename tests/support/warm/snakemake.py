"""Run Snakemake's command line in forks of this process, which has already imported Snakemake.

Importing it takes a second, which each of some hundred dry runs would pay. Each line of the input
is a request as JSON, see `warm_snakemake`; each line of the output an exit code. The name of this
file is what a job knows its Snakemake by.

With the word `jobs` it has also imported what jobs do, and each job is a fork, too: see `jobs.py`.
"""

import gc
import importlib
import json
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from snakemake import cli

sys.path.append(str(Path(__file__).parent))
import endings
import jobs

sys.path.pop()
JOBS = sys.argv[1:] == ["jobs"]
# what each run imports besides, but for the project's own modules, which tests change
for name in (
    "jsonschema",
    "msgspec",
    "nbformat",
    "pyarrow.parquet",
    "smart_open",
    "snakemake.profiles",
    "snakemake.report.html_reporter",
    "snakemake.storage",
):
    importlib.import_module(name)
# finds the plugins that are installed, which each run would look for in all folders of packages
cli.get_argument_parser()
if JOBS:
    jobs.import_libraries()
    # the server of jobs ends with its run, and is reaped here
    jobs.adopt_orphans()
# no fork looks through these modules for garbage
gc.freeze()


def main() -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin:
        place = tempfile.mkdtemp(prefix="tests-jobs-") if JOBS else None
        pid = os.fork()
        if not pid:
            endings.end_as(partial(run, **json.loads(line), place=place))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if place is not None:
            shutil.rmtree(place)
            jobs.reap()
        print(code, flush=True)


def run(
    words: list[str], folder: str, environment: dict[str, str], output: str, place: str | None
) -> None:
    """Do what `python -m snakemake` with these words would, in that folder."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, (path, flags) in enumerate([(os.devnull, os.O_RDONLY), (output, os.O_WRONLY)]):
        os.dup2(os.open(path, flags), number)
    os.dup2(1, 2)
    if place is not None:
        # what Snakemake starts jobs with
        sys.executable = str(jobs.serve(Path(place)))
    sys.path.insert(0, folder)
    sys.argv = ["snakemake", *words]
    cli.main()


main()

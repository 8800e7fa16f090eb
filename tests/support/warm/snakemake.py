"""Run Snakemake's command line in forks of this process, which has already imported Snakemake.

Importing it takes a second, which each of some hundred dry runs would pay. Each line of the input
is a request as JSON, see `warm_snakemake`; each line of the output an exit code. The name of this
file is what a job knows its Snakemake by. Jobs are forks as well, see `jobs.py`.
"""

import gc
import importlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from snakemake import cli

sys.path.append(str(Path(__file__).parent))
import jobs

sys.path.pop()
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
# no fork looks through these modules for garbage
gc.freeze()


def main() -> None:
    """Answer requests until the input ends; a fork ends as Snakemake would."""
    for line in sys.stdin:
        request = json.loads(line)
        if "--dry-run" not in request[0]:
            jobs.import_libraries()
            gc.freeze()
        place = Path(tempfile.mkdtemp(prefix="tests-jobs-"))
        pid = os.fork()
        if not pid:
            jobs.end_as(run, place, *request)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        shutil.rmtree(place)
        print(code, flush=True)


def run(
    place: Path, words: list[str], folder: str, environment: dict[str, str], output: str
) -> None:
    """Do what `python -m snakemake` with these words would, in that folder."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    tempfile.tempdir = None  # it is another in this environment
    for number, (path, flags) in enumerate([(os.devnull, os.O_RDONLY), (output, os.O_WRONLY)]):
        os.dup2(os.open(path, flags), number)
    os.dup2(1, 2)
    sys.path.insert(0, folder)
    if "torch" in sys.modules:
        jobs.serve(place)
    sys.argv = ["snakemake", *words]
    cli.main()


main()

"""Run Snakemake's command line in forks of this process, which has already imported Snakemake.

Importing it takes a second, which each of some hundred dry runs would pay. Each line of the input
is a request as JSON, see `warm_snakemake`; each line of the output an exit code. The name of this
file is what a job knows its Snakemake by.
"""

import gc
import importlib
import json
import os
import sys

from snakemake import cli

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
    """Answer requests until the input ends; a fork returns from here as Snakemake would end."""
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            run(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def run(words: list[str], folder: str, environment: dict[str, str], output: str) -> None:
    """End this process as `python -m snakemake` with these words would, in that folder."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, (path, flags) in enumerate([(os.devnull, os.O_RDONLY), (output, os.O_WRONLY)]):
        os.dup2(os.open(path, flags), number)
    os.dup2(1, 2)
    sys.path.insert(0, folder)
    sys.argv = ["snakemake", *words]
    cli.main()
    sys.exit()


main()

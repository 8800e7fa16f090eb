"""Writes which functions of the project a job runs: on PYTHONPATH of the runs of a test.

Each process adds lines to a file of its own in the folder REACHED: the job's rule, wildcards and
digest of code, and the file, the name and the first line of a function. A child that is forked
writes too, and need not end well.
"""

import os
import sys
import threading
from inspect import CO_OPTIMIZED
from pathlib import Path

FOLDER = os.environ["REACHED"]
seen: set[object] = set()


def note(frame, event, _) -> None:
    code = frame.f_code
    if event != "call" or code in seen:
        return
    seen.add(code)
    # bodies of modules and classes run at import: they are not optimized
    if "/scripts/tightrope/" not in code.co_filename or not code.co_flags & CO_OPTIMIZED:
        return
    job = getattr(sys.modules["__main__"], "snakemake", None)
    if job is not None:
        wildcards = ",".join(f"{name}={value}" for name, value in job.wildcards.items())
        where = code.co_filename.partition("/scripts/")[2]
        words = [job.rule, wildcards, job.params.code, where, code.co_qualname, code.co_firstlineno]
        with Path(FOLDER, str(os.getpid())).open("a") as stream:
            stream.write("\t".join(map(str, words)) + "\n")


threading.setprofile(note)
sys.setprofile(note)

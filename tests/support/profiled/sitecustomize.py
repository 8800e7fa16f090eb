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

FOLDER, PROJECT = os.environ["REACHED"], "/scripts/tightrope/"
seen: set[object] = set()


def note(frame, event, _) -> None:
    code = frame.f_code
    # bodies of modules and classes run at import: they are not optimized
    if event != "call" or code in seen or not code.co_flags & CO_OPTIMIZED:
        return
    if PROJECT not in code.co_filename:
        seen.add(code)
        return
    if is_imported(frame):
        return
    seen.add(code)
    job = getattr(sys.modules["__main__"], "snakemake", None)
    if job is not None:
        wildcards = ",".join(f"{name}={value}" for name, value in job.wildcards.items())
        where = code.co_filename.partition("/scripts/")[2]
        words = [job.rule, wildcards, job.params.code, where, code.co_qualname, code.co_firstlineno]
        with Path(FOLDER, str(os.getpid())).open("a") as stream:
            stream.write("\t".join(map(str, words)) + "\n")


def is_imported(frame) -> bool:
    """Whether a function is called to make a constant of a module, which the job may not use."""
    while frame := frame.f_back:
        if frame.f_code.co_name == "<module>" and PROJECT in frame.f_code.co_filename:
            return True
    return False


threading.setprofile(note)
sys.setprofile(note)

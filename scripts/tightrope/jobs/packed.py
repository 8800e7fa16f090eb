"""Folders that a job reads and writes where storage keeps them as packs, see artifacts.packs."""

import atexit
import os
from pathlib import Path
from typing import Any

from tightrope.artifacts.packs import SUFFIX, pack_of, unpack, write_pack


def with_packs(job: Any) -> None:
    """Unpack the packs among the inputs of a job, and write those among its outputs at the end.

    They have no names; outside of storage a job has none. Raises ArtifactError as `unpack` does.
    """
    for path in packs_among(job, "input"):
        unpack(Path(path))
    if packs := set(packs_among(job, "output")):
        manifests = [path for _, path in job.output.items() if pack_of(path) in packs]
        atexit.register(write_packs, manifests, os.getpid())


def packs_among(job: Any, side: str) -> list[str]:
    """Return the packs among the inputs or outputs of a job; one from the command line has none."""
    paths = getattr(job, side, None)
    return [path for path in paths if path.endswith(SUFFIX)] if isinstance(paths, list) else []


def write_packs(manifests: list[str], process: int) -> None:
    """Write the pack of each manifest that the job has written; in a forked child do nothing."""
    if os.getpid() == process:
        for manifest in filter(os.path.isfile, manifests):
            pack = pack_of(manifest)
            assert pack is not None
            write_pack(Path(pack), Path(manifest))

"""Regular expressions for the wildcards of rules."""

import os
import re
from collections.abc import Iterable


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression for any of `names`, the longest that it can match first.

    What several of them begin with is in it once: Snakemake scans it for each path of each job,
    and the names of thousands of variants are a long text.
    """
    known = sorted({*names})
    if len(known) < 2:
        return "".join(map(re.escape, known))
    start = os.path.commonprefix(known)  # noqa: RUF071 of names, not of paths
    rests: dict[str, list[str]] = {}
    for name in known:
        rests.setdefault(name[len(start) :][:1], []).append(name[len(start) :])
    shorter = "?" if rests.pop("", None) else ""
    return f"{re.escape(start)}(?:{'|'.join(map(one_of, rests.values()))}){shorter}"

"""What a record keeps of pairs of blocks: of quiet ones, and of those that other load disturbed."""

from typing import Any

from msgspec.structs import replace
from tightrope.machine.interference import Counters

# of a window in which another program had a core
BUSY = [1.0]
QUIET = Counters(waited=0.0, stolen=0.0, preempted=0.0, window=0)
WAITED = replace(QUIET, waited=0.5)


def facts(disturbed: int, quiet: int) -> dict[str, Any]:
    """`pairs` and `foreign_cores` of a shape with so many pairs of both kinds."""
    return {"pairs": [WAITED] * disturbed + [QUIET] * quiet, "foreign_cores": BUSY}

"""Settings of timings of the tiny model that wait for no quiet machine."""

import sys
from dataclasses import replace
from typing import Any

from tightrope.measure.run import TimingSettings
from tiny_model import EXECUTION, LIMITS, LONGEST

SHAPE = {"batch": 1, "sequence": 16}


def timing_settings(**plan: Any) -> TimingSettings:
    """One shape, one thread and the limits of the tests; `plan` is that of the engine, if any."""
    return TimingSettings(
        shapes=[SHAPE],
        plan=plan,
        quiet_seconds=0.0,
        max_sequence=LONGEST,
        execution=replace(EXECUTION, limits=LIMITS),
        terminal=sys.__stderr__,
    )

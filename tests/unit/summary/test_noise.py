"""What the report says of load and of a machine that changed its speed."""

from typing import Any

import pytest
from disturbed import QUIET, WAITED
from latency_records import latency_record, latency_shape
from msgspec.structs import replace
from tightrope.summary.results import why_disturbed, why_noisy

PREEMPTED = replace(QUIET, waited=None, preempted=500.0)
STOLEN = replace(QUIET, stolen=0.5)
THROTTLED = replace(QUIET, throttled=["power cap", "thermal slowdown"], computing_processes=0)
SHARED = replace(QUIET, throttled=[], computing_processes=1)
BACKUP = {"backupd": 0.25}
SLOWED_DOWN = "the GPU was throttled (thermal slowdown) and other processes on the GPU"


def shape(**changes: Any) -> Any:
    return latency_shape([], **{"pairs": [QUIET], "foreign_cores": [0.0], **changes})


@pytest.mark.parametrize(
    ("pairs", "busiest", "words"),
    [
        # the most frequent cause first
        (
            [WAITED, WAITED, STOLEN, QUIET],
            {},
            "only 1 of 4 pairs of blocks were undisturbed, 3 are needed: their threads waited for "
            "a CPU that another program used and the hypervisor took the processor",
        ),
        ([WAITED, STOLEN, STOLEN, QUIET], {}, "took the processor and their threads waited"),
        # where waiting is not counted
        ([PREEMPTED, QUIET], {}, "needed: their threads were preempted by another program"),
        # of a GPU the reasons alone
        ([THROTTLED, THROTTLED, SHARED, QUIET], BACKUP, f"are needed: {SLOWED_DOWN}"),
        ([THROTTLED, WAITED], BACKUP, "; the busiest: backupd (25 % of a core)"),
    ],
)
def test_a_row_without_a_number_says_what_took_its_pairs(pairs, busiest, words):
    found = why_disturbed(shape(pairs=pairs, foreign_cores=[1.0]), busiest, 1, 3)
    assert words in found and ("busiest" in found) == ("busiest" in words)


FOREIGN = "other programs or the hypervisor used {} cores of its processors"
IDLE = "the engine that was not timed used {} % of a core"
DRIFTED = "the machine was 20 % {} after the measurement than before"


@pytest.mark.parametrize(
    ("changes", "before", "after", "reasons"),
    [
        ({}, None, None, []),
        *(({"foreign_cores": one}, None, None, []) for one in ([], [0.1], [None])),
        # a single short window says little: it is blurred by the ticks of idle time
        ({"foreign_cores": [0.0, 0.0, None, 0.3]}, None, None, []),
        ({"foreign_cores": [0.0, 1.26, None, 0.3]}, None, None, [FOREIGN.format(0.5)]),
        ({"idle_share": 0.31}, None, None, [IDLE.format(31)]),
        ({}, [0.01] * 20, [0.0109] * 20, []),
        ({}, [0.01] * 20, [0.012] * 20, [DRIFTED.format("slower")]),
        ({}, [0.01] * 20, [0.008] * 20, [DRIFTED.format("faster")]),
        # slow rounds are no drift
        ({}, [0.01] * 20, [0.01] * 12 + [0.5] * 8, []),
        (
            {"foreign_cores": [2.0], "idle_share": 0.5},
            *([0.01], [0.012]),
            [FOREIGN.format(2.0), IDLE.format(50), DRIFTED.format("slower")],
        ),
    ],
)
def test_a_row_is_noisy_for_these_reasons(changes, before, after, reasons):
    known = before and {"before": {"rounds_s": before}, "after": {"rounds_s": after}}
    assert why_noisy(shape(**changes), latency_record("v", reference=known).reference) == reasons

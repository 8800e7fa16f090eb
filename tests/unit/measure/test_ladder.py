"""When a search for a smaller model ends, and what it chooses."""

from typing import Any

import pytest
from tightrope.measure.compression.ladder import LADDER, Asked, Rung, chosen, ending
from tightrope.measure.compression.search import over_baseline

ASKED = Asked(target=10.0, budget=0.01, seconds=600.0)


def rung(factor: float, delta: float | None, speedup: float | None, **changes: Any) -> Rung:
    made: dict[str, Any] = {
        **{"factor": factor, "structure": {"depths": [6], "width": int(1536 / factor)}},
        **{"prune": {}, "parameters": 1, "delta": delta, "delta_low": delta, "delta_high": delta},
        **{"speedup": speedup, "speedup_low": speedup, "speedup_high": speedup},
        **{"seconds": 60.0, "reason": None, **changes},
    }
    return made  # type: ignore[return-value]


def test_it_goes_on_while_the_budget_holds_and_the_target_is_not_met() -> None:
    assert ending([rung(1, -0.002, 5.0), rung(1.5, -0.004, 7.0)], ASKED) is None


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (rung(2, -0.004, 10.5), "target met"),
        (rung(2, -0.02, 12.0), "budget exceeded"),
        (rung(2, -0.004, 8.0, seconds=900.0), "time over"),
        (rung(2, None, None, reason="not built"), "not built"),
        (rung(2, -0.004, 8.0, structure={"depths": [6], "width": 1024}), "smallest structure"),
    ],
)
def test_it_ends_for_a_reason(last: Rung, why: str) -> None:
    assert ending([rung(1.5, -0.004, 7.0), last], ASKED) == why


def test_a_whole_ladder_ends_it() -> None:
    rungs = [rung(factor, -0.001, factor, seconds=1.0) for factor in LADDER]
    assert ending(rungs, ASKED) == "smallest structure"


def test_the_fastest_within_the_budget_is_chosen_and_none_where_none_is() -> None:
    within, faster = rung(1.5, -0.004, 7.0), rung(2, -0.02, 9.0)
    assert chosen([rung(1, 0.0, 5.0), within, faster], ASKED) == within
    assert chosen([faster], ASKED) is None
    assert chosen([rung(1, None, None, reason="x")], ASKED) is None


def test_a_model_that_takes_half_the_time_of_the_baseline_is_twice_as_fast() -> None:
    rounds = [{"blocks_s": [[0.2, 0.2], [0.1, 0.1]], "foreign_cores": 0.0} for _ in range(6)]
    assert over_baseline(rounds).value == pytest.approx(2.0)

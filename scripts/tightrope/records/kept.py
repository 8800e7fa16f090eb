"""What of a measurement counts, and why not: decided once, for summary, page and repetition."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tightrope.machine.interference import MAX_FOREIGN_CORES, SLOWDOWNS, Counters, disturbance

Call = TypeVar("Call")
BUSIEST = "; the busiest: "


class Kept(NamedTuple, Generic[Call]):
    """The calls of a part of a measurement that count.

    `disturbed` says why they are too few where other load is the reason; with `provisional` all
    calls count nevertheless. `disturbed_calls` is the number of those that other load disturbed.
    """

    calls: list[Call]
    disturbed_calls: int = 0
    disturbed: str | None = None
    provisional: bool = False

    @property
    def counted(self) -> list[Call]:
        """The calls that a number may rest on, none where they are too few."""
        return [] if self.disturbed and not self.provisional else self.calls


def kept(
    calls: Sequence[Any], fewest: int, what: str, busiest: dict[str, float], *, accept: bool = False
) -> Kept[Any]:
    """Return what counts of these calls, each with its `foreign_cores`; see `kept_of`.

    `what` was measured while the `busiest` programs ran, which the reason names.
    """
    quiet = [one for one in calls if one.foreign_cores <= MAX_FOREIGN_CORES]

    def why() -> str:
        return disturbed_while(what, max(one.foreign_cores for one in calls), busiest)

    return kept_of(calls, quiet, fewest, why, accept=accept)


def kept_of(
    calls: Sequence[Call],
    quiet: list[Call],
    fewest: int,
    why: Callable[[], str],
    *,
    accept: bool = False,
) -> Kept[Call]:
    """Return what counts of calls of which those in `quiet` are undisturbed.

    A number needs `fewest` undisturbed calls; with `accept` disturbed ones do where they are too
    few. `why` says what disturbed them.
    """
    disturbed = len(calls) - len(quiet)
    if len(calls) < fewest or len(quiet) >= fewest:
        return Kept(quiet, disturbed)
    return Kept([*calls] if accept else quiet, disturbed, why(), accept)


def disturbed_while(what: str, cores: float, busiest: dict[str, float]) -> str:
    """Report that other load used `cores` cores during a measurement without pairs."""
    used = f"other programs or the hypervisor used up to {cores:.1f} cores of its processors"
    return f"{used} in {what}{named(busiest)}"


def named(busiest: dict[str, float]) -> str:
    """Return a sentence ending that names the programs with the highest load; empty without any."""
    words = ", ".join(f"{name} ({100 * cores:.0f} % of a core)" for name, cores in busiest.items())
    return f"{BUSIEST}{words}" if words else ""


CAUSES = {
    "waited": "their threads waited for a CPU that another program used",
    "preempted": "their threads were preempted by another program",
    "stolen": "the hypervisor took the processor",
    "throttled": "the GPU was throttled",
    "shared": "other processes on the GPU",
}
OF_THE_GPU = {"throttled", "shared"}


def causes(pairs: list[Counters], windows: list[float | None], busiest: dict[str, float]) -> str:
    """Name what disturbed the pairs, the most frequent first, and the busiest programs."""
    counts = Counter(filter(None, (disturbance(pair, windows) for pair in pairs)))
    reasons = SLOWDOWNS & {reason for pair in pairs for reason in pair.throttled or ()}
    why = {"throttled": f" ({', '.join(sorted(reasons))})"}
    words = " and ".join(CAUSES[one] + why.get(one, "") for one, _ in counts.most_common())
    return words + (named(busiest) if counts.keys() - OF_THE_GPU else "")

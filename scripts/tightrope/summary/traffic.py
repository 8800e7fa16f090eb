"""Traffic entries of summary.json."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.machine.host import fingerprint
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.traffic import TrafficRecord
from tightrope.summary.noise import disturbed_while
from tightrope.summary.workload_types import Changes, Traffic, TrafficRow

# test of a record, see TrafficRecord
Test = dict[str, Any]
# logit margin up to which floating-point error alone can change the prediction
TIE = 1e-3
LOADGEN = "mlcommons-loadgen"
SCENARIOS = ("single_stream", "offline", "server")


def traffic_entries(
    records: Iterable[TrafficRecord], *, accept_disturbed: bool = False
) -> list[Traffic]:
    """Return `traffic` of the summary, in record order."""
    return [
        traffic_entry(record, host=fingerprint(record.host), accept_disturbed=accept_disturbed)
        for record in records
    ]


def traffic_entry(record: TrafficRecord, *, host: str, accept_disturbed: bool = False) -> Traffic:
    """Return the entry of a traffic record; values without a valid measurement are None.

    Times of tests disturbed by other load are None too, and `disturbed` of the row gives the
    reason; with `accept_disturbed` they are given, and the row is `provisional`.

    `padding_share` is the share of padding in all tokens, `gain` is `samples_per_s` over that of
    the padding `fixed`; images are not padded and have neither. `changed` counts predictions that
    differ from those of `fixed` where its margin is above 1e-3, `ties_changed` the other
    differences.
    """
    lengths = sorted(Counter(record.lengths).items())
    rows = [padding_row(record, one, accept_disturbed) for one in record.plan["padding"]]
    return {
        "model": record.model,
        "variant": record.variant,
        "host": host,
        "status": record.status,
        "reason": record.reason,
        "measured": record.measured,
        "threads": record.threads,
        "batch": record.plan["batch"],
        "p99_bound_s": record.plan["p99_bound_s"],
        "samples": record.samples,
        "longest": record.longest,
        "height": record.height,
        "width": record.width,
        "edges": record.edges,
        "lengths": {
            "tokens": [length for length, _ in lengths],
            "samples": [count for _, count in lengths],
        },
        "rows": rows if record.status == "ok" else [],
        "loadgen": record.libraries.get(LOADGEN),
    }


def padding_row(record: TrafficRecord, padding: str, accept_disturbed: bool) -> TrafficRow:
    """Return the row of one padding mode."""
    single, offline, server = (
        test_of(record, padding, scenario, accept_disturbed) for scenario in SCENARIOS
    )
    fixed = test_of(record, "fixed", "offline", accept_disturbed).get("samples_per_s")
    rate = offline.get("samples_per_s")
    tokens = offline.get("tokens")
    disturbed = why_disturbed(record, padding)
    return {
        "padding": padding,
        "disturbed": disturbed,
        "provisional": bool(disturbed and accept_disturbed),
        "samples_per_s": rate,
        "single_stream_p90_s": single.get("p90_s"),
        "server_per_s": server.get("issued_per_s"),
        "server_reason": server.get("reason"),
        "padding_share": tokens and offline["padded_tokens"] / (tokens + offline["padded_tokens"]),
        "gain": rate and fixed and rate / fixed,
        **changes(record.answers.get("fixed"), record.answers.get(padding)),
    }


def test_of(record: TrafficRecord, padding: str, scenario: str, accept_disturbed: bool) -> Test:
    """Return the valid test of a padding mode and scenario, empty if there is none.

    Disturbed tests count only with `accept_disturbed`.
    """
    return next(
        (
            test
            for test in record.tests
            if (test["padding"], test["scenario"]) == (padding, scenario)
            and test.get("valid", True)
            and (accept_disturbed or foreign_cores(test) <= MAX_FOREIGN_CORES)
        ),
        {},
    )


def foreign_cores(test: Test) -> float:
    """Return the most cores that other programs used in a test, or at any rate of `server`."""
    return max((rate["foreign_cores"] for rate in test.get("rates", [test])), default=0.0)


def why_disturbed(record: TrafficRecord, padding: str) -> str | None:
    """Name the tests of a padding mode that other load disturbed, None without any."""
    own = [test for test in record.tests if test["padding"] == padding]
    cores = {test["scenario"]: foreign_cores(test) for test in own}
    disturbed = {name: used for name, used in cores.items() if used > MAX_FOREIGN_CORES}
    if not disturbed:
        return None
    tests = " and ".join(scenario.replace("_", " ") for scenario in disturbed)
    return disturbed_while(tests, max(disturbed.values()), record.busiest)


def changes(fixed: Mapping[str, list[Any]] | None, own: Mapping[str, list[Any]] | None) -> Changes:
    """Count predictions that differ from those of `fixed`, with ties counted separately."""
    if fixed is None or own is None:
        return {"changed": None, "ties_changed": None}
    margins = [
        margin
        for before, after, margin in zip(
            fixed["predictions"], own["predictions"], fixed["margins"], strict=True
        )
        if before != after
    ]
    changed = sum(margin > TIE for margin in margins)
    return {"changed": changed, "ties_changed": len(margins) - changed}

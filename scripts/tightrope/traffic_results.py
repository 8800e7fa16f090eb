"""From the traffic record of one variant to its entry in the summary."""

from collections import Counter
from typing import Any

from tightrope.traffic_record import TrafficRecord

Entry = dict[str, Any]

# below this difference of logits the two highest may change places by rounding alone
TIE = 1e-3
LOADGEN = "mlcommons-loadgen"


def traffic_entry(record: TrafficRecord, *, host: str) -> Entry:
    """The entry of one record; what was not measured, or not validly, is None.

    `padding_share` is the share of all tokens that padding added, `gain` is `samples_per_s` over
    that of the padding `fixed`; images, which are not padded, have neither. `changed` counts
    predictions that differ from those of `fixed` where its margin is above 1e-3, `ties_changed`
    those where it is not.
    """
    lengths = sorted(Counter(record.lengths).items())
    rows = [padding_row(record, padding) for padding in record.plan["padding"]]
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


def padding_row(record: TrafficRecord, padding: str) -> Entry:
    """One of `rows`: what one padding gives."""
    single, offline, server = (
        test_of(record, padding, scenario) for scenario in ("single_stream", "offline", "server")
    )
    fixed = test_of(record, "fixed", "offline").get("samples_per_s")
    rate = offline.get("samples_per_s")
    tokens = offline.get("tokens")
    return {
        "padding": padding,
        "samples_per_s": rate,
        "single_stream_p90_s": single.get("p90_s"),
        "server_per_s": server.get("issued_per_s"),
        "server_reason": server.get("reason"),
        "padding_share": tokens and offline["padded_tokens"] / (tokens + offline["padded_tokens"]),
        "gain": rate and fixed and rate / fixed,
        **changes(record.answers.get("fixed"), record.answers.get(padding)),
    }


def test_of(record: TrafficRecord, padding: str, scenario: str) -> Entry:
    """The test of that padding and scenario; empty where there is none that is valid."""
    return next(
        (
            test
            for test in record.tests
            if (test["padding"], test["scenario"]) == (padding, scenario)
            and test.get("valid", True)
        ),
        {},
    )


def changes(fixed: Entry | None, own: Entry | None) -> Entry:
    """How many predictions differ, apart from ties and in ties."""
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

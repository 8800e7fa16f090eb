"""Figures of a model for each host: times of two hosts are never in one figure."""

from collections.abc import Iterable, Mapping
from typing import Any

from tightrope.report.sections.figures import trade_offs
from tightrope.report.sections.speedups import speedups

Record = Mapping[str, Any]


def figures_by_host(
    measured: Iterable[Record],
    baselines: Mapping[str, str],
    picks: Iterable[Record],
    hosts: Mapping[str, str],
    *,
    budget: float | None,
) -> dict[str, Any]:
    """Return the hosts of the results, and the figures of each host."""
    deploy: dict[Any, set[str]] = {}
    equals: dict[Any, set[str]] = {}
    for pick in picks:
        deploy.setdefault(pick["shape"], set()).add(pick["variant"])
        equals.setdefault(pick["shape"], set()).update([pick["variant"], *pick["equal"]])
    by_host: dict[Any, list[Record]] = {}
    for result in measured:
        by_host.setdefault(result.get("host"), []).append(result)
    return {
        "hosts": list(by_host),
        "trade_offs": [
            figure
            for host, group in by_host.items()
            for figure in trade_offs(group, baselines, deploy, equals, budget, host=hosts.get(host))
        ],
        "speedups": [
            figure
            for host, group in by_host.items()
            for figure in speedups(group, baselines, host=hosts.get(host))
        ],
    }

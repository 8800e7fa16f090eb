"""Report section on INT8: calibrations, and operators that int8-auto left in float."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.machine.host import saturates
from tightrope.report.sections.int8_figures import calibration_figures, sensitivity_figure
from tightrope.report.style.numbers import significant, whole
from tightrope.variants import GIVEN, QUANTIZED

Record = Mapping[str, Any]


def int8_section(
    results: Sequence[Record], model: Record, hosts: Mapping[str, str], budget_points: float | None
) -> dict[str, Any] | None:
    """Return the section of a model, None if no INT8 or FP8 variant was evaluated.

    `rows` are those of the table, `figures` have two panels or a sentence each, `searches` a
    sentence and trials, `sensitivities` a chart and rows. `methods` and `mixed` precisions are
    those that the figures draw.
    """
    rows = [table_row(result) for result in results if is_quantized(result)]
    rows = [row for row in rows if row["accuracy"]]
    if not rows:
        return None
    searches = [search_summary(result) for result in results if result.get("search")]
    figures = calibration_figures(rows, hosts, budget_points)
    drawn = [point for figure in figures if figure["panels"] for point in figure["points"]]
    return {
        "rows": rows,
        "figures": figures,
        "methods": {point["method"] for point in drawn},
        "mixed": {point["precision"] for point in drawn if point["mixed"]},
        "searches": searches,
        "sensitivities": [
            sensitivity_figure(name, record, searches)
            for name, record in sorted((model.get("sensitivity") or {}).items(), key=by_samples)
        ],
    }


def is_quantized(result: Record) -> bool:
    """Return whether a result is quantized, in INT8 or FP8."""
    return result.get("precision") in QUANTIZED


def has_vnni(results: Iterable[Record], hosts: Mapping[str, Record]) -> bool:
    """Return whether a CPU's INT8 result comes from an x86 host whose products do not saturate."""
    sets = [
        (hosts.get(result.get("host") or "") or {}).get("isa") or []
        for result in results
        if is_quantized(result) and result.get("accuracy") and result.get("device") == "cpu"
    ]
    return any("avx2" in isa and not saturates({"isa": isa}) for isa in sets)


def table_row(result: Record) -> dict[str, Any]:
    """Return a result with its calibration parts."""
    method, samples, repair = calibration_parts(result.get("calibration"))
    return {
        "result": result,
        "accuracy": result.get("accuracy") or {},
        "method": method,
        "samples": samples,
        "repair": repair,
        "ranges": "in the file as given"
        if result.get("precision") == GIVEN
        else "ranges are found at run time",
    }


def calibration_parts(calibration: str | None) -> tuple[str | None, int | None, str | None]:
    """Return method, samples and repair from a calibration name, each None if missing."""
    method, *rest = (calibration or "").split("-", 2)
    if not rest or not rest[0].isdigit():
        return None, None, None
    return method, int(rest[0]), rest[1] if len(rest) > 1 else None


def by_samples(entry: tuple[str, Any]) -> tuple[str, int, str]:
    """Return the sort key of calibrations: a hundred samples come after twenty."""
    method, samples, _ = calibration_parts(entry[0].partition("-")[2])
    return method or "", samples or 0, entry[0]


def search_summary(result: Record) -> dict[str, Any]:
    """Return the sentence on the search of an int8-auto variant, with its data."""
    search = result["search"]
    in_float, trials = len(search["in_float"]), len(search["trials"])
    smooth = search.get("smoothquant")
    parts = [
        "plain INT8" if smooth is None else f"SmoothQuant {smooth:g}",
        f"{in_float or 'none'} of {whole(search['operators'])} operators "
        f"{'stay' if in_float > 1 else 'stays'} in float",
        f"{trials} {'trial' if trials == 1 else 'trials'} on {whole(search['samples'])} "
        f"calibration examples in {significant(search['seconds'], 2)} s.",
    ]
    return {
        **{name: result.get(name) for name in ("variant", "calibration")},
        **{name: search[name] for name in ("in_float", "trials", "samples")},
        "sentence": "; ".join(parts),
    }

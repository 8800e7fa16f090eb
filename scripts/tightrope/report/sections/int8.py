"""Report section on INT8: whether it is worth it, calibrations, sensitivity of operators."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import asdict

from tightrope.decide.quantize import Quantization, QuantizedVariant
from tightrope.decide.result import Result, interval_of
from tightrope.machine.host import saturates
from tightrope.report.charts import accuracy_over_samples, agreement_over_samples
from tightrope.report.sections.figures import change_of, join_title
from tightrope.report.style.numbers import percentage, points, ratio, whole
from tightrope.report.tables import grouped
from tightrope.summary.accuracy import Sensitivity
from tightrope.summary.models import Model
from tightrope.summary.runs import Host
from tightrope.variants import QUANTIZED

Record = Mapping[str, Any]
Point = dict[str, Any]
# engine, device, host
Engine = tuple[str, str, str]
LONGEST = 90


def int8_section(
    results: Sequence[Result],
    model: Model | None,
    hosts: Mapping[str, str],
    budget_points: float | None,
) -> dict[str, Any] | None:
    """Return the section of a model, None if no INT8 or FP8 variant was evaluated.

    `rows` are those of the table, `figures` have two panels or a sentence each, `sensitivities` the
    operators of each file. `searched` are the results of int8-auto, `methods` and `mixed`
    precisions those that the figures draw.
    """
    judged = [result for result in results if is_quantized(result) and result.accuracy]
    if not judged:
        return None
    searched = [one for one in results if one.search]
    known = model.sensitivity if model else {}
    figures = calibration_figures(judged, hosts, budget_points)
    drawn = [point for figure in figures if figure["panels"] for point in figure["points"]]
    return {
        "rows": [{"result": one, **calibration_parts(one.calibration)} for one in judged],
        "figures": figures,
        "methods": {point["method"] for point in drawn},
        "mixed": {point["precision"] for point in drawn if point["mixed"]},
        "searched": searched,
        "sensitivities": [
            sensitivity_rows(title, record, searched)
            for title, record in sorted(known.items(), key=by_samples)
        ],
    }


def is_quantized(result: Result) -> bool:
    """Return whether a result is quantized, in INT8 or FP8."""
    return result.precision in QUANTIZED


def has_vnni(results: Iterable[Result], hosts: Mapping[str, Host]) -> bool:
    """Return whether a CPU's INT8 result comes from an x86 host whose products do not saturate."""
    places = {
        result.host
        for result in results
        if is_quantized(result) and result.accuracy and result.device == "cpu"
    }
    sets = [host.isa for name, host in hosts.items() if name in places]
    return any("avx2" in isa and not saturates({"isa": isa}) for isa in sets)


def calibration_parts(calibration: str | None) -> dict[str, Any]:
    """Return method, samples and repair from a calibration name, each None if missing."""
    method, *rest = (calibration or "").split("-", 2)
    if not rest or not rest[0].isdigit():
        return {"method": None, "samples": None, "repair": None}
    repair = rest[1] if len(rest) > 1 else None
    return {"method": method, "samples": int(rest[0]), "repair": repair}


def by_samples(entry: tuple[str, Any]) -> tuple[str, int, str]:
    """Return the sort key of calibrations: a hundred samples come after twenty."""
    parts = calibration_parts(entry[0].partition("-")[2])
    return parts["method"] or "", parts["samples"] or 0, entry[0]


def calibration_figures(
    results: Sequence[Result], hosts: Mapping[str, str], budget_points: float | None
) -> list[dict[str, Any]]:
    """Return a figure per engine, device and host, on common axes, without repaired variants.

    A group with one calibration has no panels, but a `sentence`.
    """
    devices = {result.device for result in results}
    groups = grouped(
        ((result.engine, result.device, result.host), point)
        for result in results
        if (point := calibration_point(result))
    )
    several = {
        key: len({(point["method"], point["samples"]) for point in group}) > 1
        for key, group in groups.items()
    }
    extent = [point for key, group in groups.items() if several[key] for point in group]
    figures = []
    for key, group in groups.items():
        engine, device, host = key
        group.sort(key=lambda point: (point["precision"], point["method"], point["samples"]))
        title = join_title(engine, device if len(devices) > 1 else None, hosts.get(host or ""))
        drawn = panels(title, group, extent, budget_points) if several[key] else []
        sentence = None if several[key] else calibration_sentence(group)
        figures.append({"title": title, "points": group, "panels": drawn, "sentence": sentence})
    return figures


def calibration_point(result: Result) -> Point | None:
    """Return the point of a result, None if it has a repair or no accuracy change."""
    parts, accuracy = calibration_parts(result.calibration), result.accuracy
    change = accuracy.change if accuracy else None
    if parts["samples"] is None or parts.pop("repair") or accuracy is None or change is None:
        return None
    agreed = percentage(accuracy.agreement, accuracy.samples)
    return {
        **parts,
        "variant": result.variant,
        "precision": result.precision,
        "mixed": "-" in result.precision,
        **change_of(change, accuracy.samples),
        "agreement": None if accuracy.agreement is None else 100 * accuracy.agreement,
        "agreed": f"{agreed} %" if agreed else None,
    }


def panels(
    title: str, group: Sequence[Point], extent: Sequence[Point], budget: float | None
) -> list[dict[str, Any]]:
    """Return two stacked panels; the axes cover the points of `extent`."""
    change, agreed = (
        "; ".join(
            f"{one['precision']} {one['method']} {one['samples']}: {one[field]}"
            for one in group
            if one[field]
        )
        for field in ("change", "agreed")
    )
    words = f"Accuracy change over calibration samples, {title}: {change}."
    above = accuracy_over_samples(group, extent=extent, budget_points=budget, description=words)
    if not agreed:
        return [{"chart": above}]
    words = f"Agreement with fp32 over calibration samples, {title}: {agreed}."
    below = agreement_over_samples(group, extent=extent, description=words)
    return [{"chart": above}, {"chart": below}]


def calibration_sentence(group: Sequence[Record]) -> str:
    """Describe the points of one calibration in words."""
    parts = [
        f"{point['precision']} {point['change']}"
        + (f", {point['agreed']} agreement with fp32" if point["agreed"] else "")
        for point in group
    ]
    return (
        f"one calibration, {group[0]['method']} on {whole(group[0]['samples'])} samples: "
        f"{'; '.join(parts)}"
    )


def sensitivity_rows(title: str, record: Sensitivity, searched: Iterable[Result]) -> dict[str, Any]:
    """Return operators alone in INT8, most sensitive first, and which of them int8-auto left.

    `title` has scheme and calibration.
    """
    calibration = title.partition("-")[2]
    matching = [one.search for one in searched if one.search and one.calibration == calibration]
    in_float = {operator for search in matching for operator in search.in_float}
    return {
        "title": title,
        "samples": record.samples,
        "rows": [{**asdict(one), "in_float": one.operator in in_float} for one in record.operators],
        "searched": bool(matching),
    }


def quantization_section(
    entries: Sequence[Quantization],
    deployed: Iterable[Result],
    hosts: Mapping[str, str],
    *,
    machines: Mapping[str, Host],
) -> dict[str, Any] | None:
    """Return table `rows` of one model, and `sentence` if none of its engines gains.

    None without entries of `quantization`. `deployed` are the recommended results: if one is
    quantized there is no sentence, since its engine has no entry. `hosts` are `host_names`,
    `machines` the entries of the same hosts. `cause` is why INT8 is slow, None where not known.
    """
    if not entries:
        return None
    groups = grouped(((one.engine, one.device, one.host), one) for one in entries)
    for group in groups.values():
        group.sort(key=attrgetter("shape"))
    in_vain = all(entry.verdict == "do not quantize" for entry in entries)
    sentence = "; ".join(
        f"{name} {reasons_against(group)}"
        for name, group in zip(engine_names(groups, hosts), groups.values(), strict=True)
    )
    return {
        "rows": [entry for group in groups.values() for entry in group],
        "cause": why_slow(entries, hosts, machines),
        "sentence": sentence if in_vain and not any(map(is_quantized, deployed)) else None,
    }


def why_slow(
    entries: Iterable[Quantization], hosts: Mapping[str, str], machines: Mapping[str, Host]
) -> str | None:
    """State which CPUs lack VNNI, of those on which INT8 is no faster than float; None if none."""
    slow = [entry.host for entry in entries if entry.device == "cpu" and is_slow(entry)]
    known = [host for host in dict.fromkeys(slow) if host in machines]
    lacking = [host for host in known if saturates({"isa": machines[host].isa})]
    if not lacking:
        return None
    names = [hosts.get(host, "this CPU") for host in lacking]
    words = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return (
        f"{words[:1].upper()}{words[1:]} {'has' if len(names) == 1 else 'have'} no VNNI, the "
        "instruction that does the work of three in INT8 products"
    )


def engine_names(engines: Iterable[Engine], hosts: Mapping[str, str]) -> list[str]:
    """Name each engine, with its device and host if there are several."""
    keys, names = [*engines], []
    several = [len({key[index] for key in keys}) > 1 for index in (1, 2)]
    for engine, device, host in keys:
        qualifiers = [device] if several[0] else []
        qualifiers += [hosts.get(host, host)] if several[1] else []
        names.append(f"{engine} on {', '.join(qualifiers)}" if qualifiers else engine)
    return names


def reasons_against(entries: Sequence[Quantization]) -> str:
    """State everything against quantizing an engine; every entry has a reason."""
    slow = [entry for entry in entries if is_slow(entry)]
    lossy = [entry for entry in entries if is_lossy(entry)]
    failed = [entry for entry in entries if entry.failed]
    reasons = [(slow, describe_slowdown), (lossy, describe_loss), (failed, describe_failure)]
    return " and ".join(
        describe(some, names_of(some, "variant"))
        + (f" at {len(some)} of {len(entries)} shapes" if some != entries else "")
        for some, describe in reasons
        if some
    )


def names_of(entries: Iterable[Quantization], field: str) -> str:
    """Return variants of an engine without its device and name, each once."""
    names = {
        getattr(one, field).removeprefix(f"{one.device}-{one.engine}-"): None for one in entries
    }
    return " or ".join(names)


def is_slow(entry: QuantizedVariant) -> bool:
    """Return whether the whole speed-up interval over the engine in float is at most 1."""
    found = interval_of(entry.speedup)
    return found is not None and found.high <= 1


def is_lossy(entry: QuantizedVariant) -> bool:
    """Return whether accuracy is not kept."""
    return entry.accuracy is not None and entry.accuracy.verdict == "dropped"


def describe_slowdown(entries: Sequence[Quantization], names: str) -> str:
    """State that quantizing gives no speed-up, with the best ratio."""
    found = [entry.speedup for entry in entries if entry.speedup]
    best = max(found, key=lambda one: one.ratio or 0.0)
    word = "slower" if all((one.high or 1.0) < 1 for one in found) else "no faster"
    gain = f"{ratio(best)} at best" if len(entries) > 1 else ratio(best)
    # rejected only for their accuracy
    faster = [
        interval
        for entry in entries
        for other in entry.others
        if is_lossy(other) and (interval := interval_of(other.speedup)) and interval.low > 1
    ]
    lossy = ", and what is faster loses too much accuracy" if faster else ""
    return f"is {word} with {names} than with {names_of(entries, 'unquantized')} ({gain}){lossy}"


def describe_loss(entries: Sequence[Quantization], names: str) -> str:
    """State that accuracy is not kept, with the smallest loss."""
    found = [entry.accuracy for entry in entries if entry.accuracy]
    best = max(found, key=lambda one: one.delta or 0.0)
    change = points(best.delta, best.samples)
    return f"loses too much accuracy with {names} ({change} points)"


def describe_failure(entries: Sequence[Quantization], names: str) -> str:
    """State that the variants failed, with the start of the first reason."""
    reason = (entries[0].failed or "").splitlines()[0].partition(";")[0]
    if len(reason) > LONGEST:
        reason = f"{reason[:LONGEST].rstrip()}\N{HORIZONTAL ELLIPSIS}"
    return f"failed with {names} ({reason})"

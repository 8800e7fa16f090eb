"""Report section on whether to quantize: a table, and a sentence if it is not worth it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from tightrope.machine.host import saturates
from tightrope.report.sections.int8 import is_quantized
from tightrope.report.style.numbers import points, ratio, shape_label, sizes
from tightrope.summary.measured import interval_of
from tightrope.summary.quantize_or_not import Quantization, QuantizedVariant
from tightrope.summary.results import Result
from tightrope.summary.runs import Host

DO_NOT = "do not quantize"
# CSS class of the accuracy verdict with the same meaning
LOOKS = {"quantize": "kept", DO_NOT: "dropped"}
LONGEST = 90


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
    groups: dict[Any, list[Quantization]] = {}
    for entry in sorted(entries, key=lambda one: sizes(one.shape)):
        groups.setdefault(engine_of(entry), []).append(entry)
    groups = {key: groups[key] for key in dict.fromkeys(map(engine_of, entries))}
    names = engine_names(groups, hosts)
    rows = [table_row(entry, hosts) for group in groups.values() for entry in group]
    in_vain = all(entry.verdict == DO_NOT for entry in entries)
    sentence = "; ".join(f"{names[key]} {reasons_against(group)}" for key, group in groups.items())
    return {
        "rows": rows,
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
    verb = "has" if len(names) == 1 else "have"
    return (
        f"{join_words(names)} {verb} no VNNI, the instruction that does the work of three in INT8 "
        "products"
    )


def join_words(names: Sequence[str]) -> str:
    """Join names with commas and "and", and start with a capital letter."""
    words = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return words[:1].upper() + words[1:]


def engine_of(entry: Quantization) -> tuple[str, str, str]:
    """Return the key of an engine on a device and host."""
    return entry.engine, entry.device, entry.host


def engine_names(
    engines: Iterable[tuple[str, str, str]], hosts: Mapping[str, str]
) -> dict[tuple[str, str, str], str]:
    """Name each engine, with its device and host if there are several."""
    devices, host_keys = ({key[index] for key in engines} for index in (1, 2))
    names = {}
    for engine, device, host in engines:
        qualifiers = [device] if len(devices) > 1 else []
        qualifiers += [hosts.get(host, host)] if len(host_keys) > 1 else []
        place = f" on {', '.join(qualifiers)}" if qualifiers else ""
        names[engine, device, host] = engine + place
    return names


def table_row(entry: Quantization, hosts: Mapping[str, str]) -> dict[str, Any]:
    """Return an entry with the table's texts; `alike` groups its `others`."""
    return {
        **asdict(entry),
        "host": hosts.get(entry.host),
        "shape": shape_label(entry.shape),
        "look": look(entry),
        "float": short_name(entry, entry.unquantized),
        "alike": group_by_verdict(entry.others),
    }


def group_by_verdict(variants: Iterable[QuantizedVariant]) -> list[dict[str, Any]]:
    """Group the variants that have the same verdict for the same reasons."""
    groups: dict[Any, dict[str, Any]] = {}
    for variant in variants:
        told = {"verdict": variant.verdict, "why": variant.why, "look": look(variant)}
        group = groups.setdefault((variant.verdict, *variant.why), {**told, "variants": []})
        group["variants"].append(variant.variant)
    return list(groups.values())


def look(entry: QuantizedVariant) -> str:
    """Return the CSS class of a verdict."""
    return LOOKS.get(entry.verdict, "undecided")


def short_name(entry: Quantization, variant: str) -> str:
    """Return a variant's name without the device and engine of its entry."""
    return variant.removeprefix(f"{entry.device}-{entry.engine}-")


def reasons_against(entries: Sequence[Quantization]) -> str:
    """State everything against quantizing an engine; every entry has a reason."""
    slow = [entry for entry in entries if is_slow(entry)]
    lossy = [entry for entry in entries if is_lossy(entry)]
    failed = [entry for entry in entries if entry.failed]
    reasons = [(slow, describe_slowdown), (lossy, describe_loss), (failed, describe_failure)]
    return " and ".join(
        describe(matching)
        + (f" at {len(matching)} of {len(entries)} shapes" if matching != entries else "")
        for matching, describe in reasons
        if matching
    )


def is_slow(entry: QuantizedVariant) -> bool:
    """Return whether the whole speed-up interval over the engine in float is at most 1."""
    found = interval_of(entry.speedup)
    return found is not None and found.high <= 1


def is_lossy(entry: QuantizedVariant) -> bool:
    """Return whether accuracy is not kept."""
    return entry.accuracy is not None and entry.accuracy.verdict == "dropped"


def describe_slowdown(entries: Sequence[Quantization]) -> str:
    """State that quantizing gives no speed-up, with the best ratio."""
    found = [one for one in (entry.speedup for entry in entries) if one]
    best = max(found, key=lambda one: one.ratio or 0.0)
    word = "slower" if all((one.high or 1.0) < 1 for one in found) else "no faster"
    unquantized = join_names(short_name(entry, entry.unquantized) for entry in entries)
    gain = f"{ratio(best)} at best" if len(entries) > 1 else ratio(best)
    return f"is {word} with {quantized_names(entries)} than with {unquantized} ({gain})" + (
        ", and what is faster loses too much accuracy"
        if any(map(rejected_for_accuracy, entries))
        else ""
    )


def rejected_for_accuracy(entry: Quantization) -> bool:
    """Return whether a faster variant was rejected only for its accuracy."""
    return any(
        is_lossy(other) and (found := interval_of(other.speedup)) and found.low > 1
        for other in entry.others
    )


def describe_loss(entries: Sequence[Quantization]) -> str:
    """State that accuracy is not kept, with the smallest loss."""
    found = [one for one in (entry.accuracy for entry in entries) if one]
    best = max(found, key=lambda one: one.delta or 0.0)
    change = points(best.delta, best.samples)
    return f"loses too much accuracy with {quantized_names(entries)} ({change} points)"


def describe_failure(entries: Sequence[Quantization]) -> str:
    """State that the variants failed, with the start of the first reason."""
    reason = (entries[0].failed or "").splitlines()[0].partition(";")[0]
    text = (
        reason if len(reason) <= LONGEST else f"{reason[:LONGEST].rstrip()}\N{HORIZONTAL ELLIPSIS}"
    )
    return f"failed with {quantized_names(entries)} ({text})"


def quantized_names(entries: Sequence[Quantization]) -> str:
    """Return the quantized variants of an engine's entries."""
    return join_names(short_name(entry, entry.variant) for entry in entries)


def join_names(names: Iterable[str]) -> str:
    """Join the distinct names with "or"."""
    return " or ".join(dict.fromkeys(names))

"""Report section on whether to quantize: a table, and a sentence if it is not worth it."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from tightrope.machine.host import saturates
from tightrope.report.sections.int8 import is_quantized
from tightrope.report.style.numbers import points, ratio
from tightrope.report.tables import grouped
from tightrope.summary.measured import interval_of
from tightrope.summary.quantize_or_not import Quantization, QuantizedVariant
from tightrope.summary.results import Result
from tightrope.summary.runs import Host

# engine, device, host
Engine = tuple[str, str, str]
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

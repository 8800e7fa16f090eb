"""The whole comparison of two reports, and what is different between them, likely causes first."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec.structs import asdict

from tightrope.compare.accuracy import AccuracyChange, accuracy_changes
from tightrope.compare.read import Key, Report, RowKey, with_calibrations_of
from tightrope.compare.speed import SpeedChange, speed_changes, with_remeasured
from tightrope.decide.result import Entry, Result, Shape, same
from tightrope.engine_table import ENGINES
from tightrope.errors import TightropeError
from tightrope.statistics import Interval

Remeasure = Callable[[Report, Report, Sequence[RowKey]], Mapping[RowKey, Interval | str]]
# what makes a machine another one; a GPU counts for what ran on it
MACHINE = ("cpu", "isa", "cores")
# what a difference is of: where two concern the same variants, the more specific is named first
KINDS = ("library", "options", "code", "checkpoint", "data", "host", "run")
# with which a variant is no reference: others leave its speed relative to others as it is, or
# concern all alike; and by which the answers of an unchanged baseline may be others
OF_SPEED, OF_ANSWERS = ("library", "options"), ("library", "options", "checkpoint", "data")
HOST_FACTS = ("cpu", "isa", "cores", "memory_bytes", "gpu", "driver", "python")
OF_GPU = {"gpu", "driver"}
RUN_FACTS = ("tightrope", "configuration", "overrides", "accuracy_budget_points")
MODEL_FACTS = {
    "checkpoint_sha256": "checkpoint",
    "parameters": "checkpoint",
    "activation": "checkpoint",
    "labels": "checkpoint",
    "data": "data",
}
# libraries that make the files which engines are built from
OF_ONNX, CALIBRATES = ("onnx", "onnxslim"), "nncf"
# steps of variants with a calibration alone
OF_INT8 = {"calibrate", "quantize_onnx", "search_operators"}


class Choice(NamedTuple):
    """A recommendation that is another one; None where there was or is none."""

    model: str
    shape: Shape
    old: str | None
    new: str | None


class Difference(NamedTuple):
    """A fact that is not the same in both runs; `concerns` are the variants that it can change."""

    kind: str
    name: str
    old: Any
    new: Any
    concerns: frozenset[Key]


@dataclass(frozen=True)
class Comparison:
    """What changed from the old report to the new one.

    `moved` are the variants whose time or accuracy changed beyond the noise, `gone` those that had
    a result and have none, with the reason; `came` the other way round. `causes` are the
    differences, each with whether it concerns one that moved. The first one, the likely cause,
    concerns most of the moved variants and fewest of the others.
    """

    old: Report
    new: Report
    speed: list[SpeedChange]
    accuracy: list[AccuracyChange]
    moved: set[Key]
    came: list[Key]
    gone: list[tuple[Key, str]]
    choices: list[Choice]
    causes: list[tuple[Difference, bool]]


def compare(
    old: Report, new: Report, *, across_hosts: bool = False, again: Remeasure | None = None
) -> Comparison:
    """Return the comparison; raise TightropeError for reports that cannot be compared.

    They need a model in common, and the same hosts unless `across_hosts`. `again` times rows side
    by side, see `remeasure`.
    """
    old = with_calibrations_of(new, old)
    measured = old.ok & new.ok
    require_comparable(old, new, () if across_hosts else measured)
    found = sorted(differences(old, new), key=lambda one: (KINDS.index(one.kind), one.name))
    speed = speed_changes(old, new, touched(found, OF_SPEED))
    if again:
        speed = with_remeasured(speed, again(old, new, [one.row for one in speed]))
    other = touched(found, OF_ANSWERS)
    bases = {key: Key(key.model, str(new.results[key].baseline)) for key in measured}
    unchanged = {key for key, base in bases.items() if base in measured and base not in other}
    accuracy = accuracy_changes(old, new, measured, unchanged)
    moved = {one.row.key for one in speed if one.verdict in ("slower", "faster")}
    moved |= {one.key for one in accuracy if one.verdict in ("worse", "better")}
    gone = []
    for key in sorted(old.ok - new.ok):
        result = new.results.get(key)
        why = result and f"{result.status}: {result.reason or 'without a reason'}"
        gone.append((key, why or "it is not in the new report"))
    before, after = recommended(old), recommended(new)
    both = sorted(before.keys() & after.keys())
    choices = [Choice(*place[:2], before[place], after[place]) for place in both]
    steady = measured - moved

    def fit(one: Difference) -> float:
        shares = [len(one.concerns & some) / max(1, len(some)) for some in (moved, steady)]
        return shares[0] - shares[1]

    return Comparison(
        old,
        new,
        speed,
        accuracy,
        moved,
        came=sorted(new.ok - old.ok),
        gone=gone,
        choices=[one for one in choices if one.old != one.new],
        # stable: KINDS decides among equals
        causes=[(one, bool(one.concerns & moved)) for one in sorted(found, key=fit, reverse=True)],
    )


def require_comparable(old: Report, new: Report, measured: Iterable[Key]) -> None:
    """Raise TightropeError without a model in common, or where these were on different hosts."""
    models = [{key.model for key in one.results} for one in (old, new)]
    if not models[0] & models[1]:
        names = [", ".join(sorted(one)[:5]) or "none" for one in models]
        raise TightropeError(
            f"no model in common: {old.path} has {names[0]}, {new.path} has {names[1]}"
        )
    for key in sorted(measured):
        names = [str(one.results[key].host) for one in (old, new)]
        before, after = old.document.hosts.get(names[0]), new.document.hosts.get(names[1])
        if before is None or after is None:
            raise TightropeError(f"{'/'.join(key)}: a report does not say on which host it ran")
        facts = (*MACHINE, "gpu") if key.variant.startswith("cuda") else MACHINE
        for name, was, now in differing(before, after, facts):
            was, now = (" ".join(one) if isinstance(one, list) else one for one in (was, now))
            raise TightropeError(
                f"different hosts: {name} of {'/'.join(key)} was {was} and is {now}; compare runs "
                "of one machine, or give --across-hosts"
            )


def recommended(report: Report) -> dict[tuple[str, Shape, str], str | None]:
    """Return the recommended variant by model, shape and host; a host that is alone has no name."""
    several = len(report.document.hosts) > 1
    return {
        (one.model, one.shape, one.host if several else ""): one.variant
        for one in report.document.recommendations
    }


def differences(old: Report, new: Report) -> Iterator[Difference]:
    """Yield what is different between two runs, for the variants that both have.

    Settings that differ alike are one difference, and so are steps of the same variants.
    """
    keys = sorted(old.results.keys() & new.results.keys())
    pairs: dict[tuple[str, str], list[Key]] = defaultdict(list)
    for key in keys:
        names = [str(one.results[key].host) for one in (old, new)]
        if names[0] in old.document.hosts and names[1] in new.document.hosts:
            pairs[names[0], names[1]].append(key)
    for (was_on, is_on), several in pairs.items():
        where = f" on {is_on}" if len(pairs) > 1 else ""
        hosts = old.document.hosts[was_on], new.document.hosts[is_on]
        on_gpu = [key for key in several if key.variant.startswith("cuda")]
        for name, was, now in differing(*hosts, HOST_FACTS):
            concerns = frozenset(on_gpu if name in OF_GPU else several)
            yield Difference("host", f"{name}{where}", was, now, concerns)
        for name, was, now in differing(*(host.libraries for host in hosts)):
            users = frozenset(key for key in several if uses(new.results[key], name))
            yield Difference("library", f"{name}{where}", was, now, users)
    for model in sorted({key.model for key in keys}):
        own = frozenset(key for key in keys if key.model == model)
        before, after = (one.document.models.get(model) for one in (old, new))
        for name, was, now in differing(before, after, MODEL_FACTS):
            yield Difference(MODEL_FACTS[name], f"{name} of {model}", was, now, own)
    alike: dict[str, tuple[tuple[str, Any, Any], list[Key]]] = {}
    for key in (key for key in keys if key in old.ok and key in new.ok):
        for fact in differing(*(settings_of(one.results[key]) for one in (old, new))):
            alike.setdefault(repr(fact), (fact, []))[1].append(key)
    for fact, several in alike.values():
        yield Difference("options", *fact, frozenset(several))
    code = old.document.code, new.document.code
    steps: dict[frozenset[Key], list[tuple[str, Any, Any]]] = defaultdict(list)
    for fact in differing(*code, sorted(code[0].keys() & code[1].keys())):
        steps[frozenset(key for key in keys if takes(new.results[key], fact[0]))].append(fact)
    for users, facts in steps.items():
        names, was, now = map(list, zip(*facts, strict=True))
        yield Difference("code", ", ".join(names), was, now, users)
    for name, was, now in differing(old.document, new.document, RUN_FACTS):
        yield Difference("run", name, was, now, frozenset(keys if name == "tightrope" else ()))


def differing(
    old: Entry | Mapping[str, Any] | None,
    new: Entry | Mapping[str, Any] | None,
    names: Iterable[str] | None = None,
) -> Iterator[tuple[str, Any, Any]]:
    """Yield which of these facts differ between two, by default of all names, with both values."""
    was, now = (asdict(one) if isinstance(one, Entry) else one or {} for one in (old, new))
    for name in sorted({*was, *now}) if names is None else names:
        if was.get(name) != now.get(name):
            yield name, was.get(name), now.get(name)


def uses(result: Result, library: str) -> bool:
    """Return whether the engine of a result, or what it is built from, is made by a library."""
    engine = ENGINES.get(result.engine)
    if engine is None:
        return True
    if library == CALIBRATES:
        return CALIBRATES in (result.calibration or "")
    return library in engine.libraries or (library in OF_ONNX and engine.source == "onnx")


def settings_of(result: Result) -> dict[str, Any]:
    """Return settings of a variant; options of its engine by their place in the configuration."""
    options = {f"{result.engine}.{name}": one for name, one in (result.options or {}).items()}
    return same(result, "threads", "baseline", "calibration") | options


def takes(result: Result, step: str) -> bool:
    """Return whether a result comes from a step, as `build onnxruntime` or `calibrate`."""
    if engine := step.partition(" ")[2]:
        return engine == result.engine
    return step not in OF_INT8 or bool(result.calibration)


def touched(found: Iterable[Difference], kinds: Collection[str]) -> set[Key]:
    """Return the variants that some difference of these kinds concerns."""
    return {key for one in found if one.kind in kinds for key in one.concerns}

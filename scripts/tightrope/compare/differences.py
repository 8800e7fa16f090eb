"""What is different between two runs, and which of it is the likely cause of a change."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tightrope.compare.read import Entry, Key, Report
from tightrope.engine_table import ENGINES

Kind = Literal["library", "options", "code", "checkpoint", "data", "host", "run"]
# where two concern the same variants, the more specific is named first
KINDS: tuple[Kind, ...] = ("library", "options", "code", "checkpoint", "data", "host", "run")
# of these a difference leaves the speed of a variant relative to others as it is, or concerns all
# of them alike, so that it changes no reference
OF_ALL = {"code", "data", "host", "run", "checkpoint"}
HOST_FACTS = ("cpu", "isa", "cores", "memory_bytes", "gpu", "driver", "python")
OF_GPU = {"gpu", "driver"}
RUN_FACTS = ("tightrope", "configuration", "overrides", "accuracy_budget_points")
MODEL_FACTS: dict[str, Kind] = {
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


@dataclass(frozen=True)
class Difference:
    """A fact that is not the same in both runs; `concerns` are the variants that it can change."""

    kind: Kind
    name: str
    old: Any
    new: Any
    concerns: frozenset[Key]


def differences(old: Report, new: Report) -> list[Difference]:
    """Return what is different between two runs, for the variants that both have."""
    keys = sorted(old.results.keys() & new.results.keys())
    found = [*of_hosts(old, new, keys), *of_models(old, new, keys), *of_variants(old, new, keys)]
    found += of_code(old, new, keys)
    every = frozenset(keys)
    for name in RUN_FACTS:
        before, after = (one.document.get(name) for one in (old, new))
        if before != after:
            concerns = every if name == "tightrope" else frozenset()
            found.append(Difference("run", name, before, after, concerns))
    return sorted(found, key=lambda one: (KINDS.index(one.kind), one.name))


def of_hosts(old: Report, new: Report, keys: Iterable[Key]) -> Iterator[Difference]:
    """Yield differences of libraries and machines, of each pair of hosts."""
    pairs: dict[tuple[str, str], list[Key]] = {}
    for key in keys:
        before, after = (str(one.results[key].get("host")) for one in (old, new))
        if before in old.document["hosts"] and after in new.document["hosts"]:
            pairs.setdefault((before, after), []).append(key)
    for (before, after), own in pairs.items():
        where = f" on {after}" if len(pairs) > 1 else ""
        hosts = old.document["hosts"][before], new.document["hosts"][after]
        for name in changed(hosts, HOST_FACTS):
            on_gpu = [key for key in own if key.variant.startswith("cuda")]
            yield difference("host", name, hosts, on_gpu if name in OF_GPU else own, where)
        libraries = [host.get("libraries") or {} for host in hosts]
        for name in changed(libraries, sorted({*libraries[0], *libraries[1]})):
            users = [key for key in own if uses(new.results[key], name)]
            yield difference("library", name, libraries, users, where)


def changed(facts: Sequence[Entry], names: Iterable[str]) -> Iterator[str]:
    """Yield which of these facts differ between two mappings."""
    before, after = facts
    return (name for name in names if before.get(name) != after.get(name))


def difference(
    kind: Kind, name: str, facts: Sequence[Entry], concerns: Iterable[Key], where: str = ""
) -> Difference:
    """Return the difference of a fact between two mappings; `where` is added to its name."""
    before, after = (one.get(name) for one in facts)
    return Difference(kind, f"{name}{where}", before, after, frozenset(concerns))


def uses(result: Entry, library: str) -> bool:
    """Return whether the engine of a result, or what it is built from, is made by a library."""
    engine = ENGINES.get(result.get("engine", ""))
    if engine is None:
        return True
    if library == CALIBRATES:
        return CALIBRATES in (result.get("calibration") or "")
    return library in engine.libraries or (library in OF_ONNX and engine.source == "onnx")


def of_models(old: Report, new: Report, keys: Collection[Key]) -> Iterator[Difference]:
    """Yield differences of checkpoints and data."""
    for model in sorted({key.model for key in keys}):
        own = [key for key in keys if key.model == model]
        facts = old.model(model), new.model(model)
        for name in changed(facts, MODEL_FACTS):
            yield difference(MODEL_FACTS[name], name, facts, own, f" of {model}")


def of_variants(old: Report, new: Report, keys: Iterable[Key]) -> Iterator[Difference]:
    """Yield differences of the settings of a variant, together where several have the same one."""
    together: dict[tuple[str, str, str], list[Key]] = {}
    values: dict[tuple[str, str, str], tuple[Any, Any]] = {}
    for key in keys:
        results = old.results[key], new.results[key]
        if any(one["status"] != "ok" for one in results):
            continue
        for name, (before, after) in settings_of(results):
            same = name, repr(before), repr(after)
            together.setdefault(same, []).append(key)
            values[same] = before, after
    for same, own in together.items():
        yield Difference("options", same[0], *values[same], frozenset(own))


def settings_of(results: tuple[Entry, Entry]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield each setting of a variant that differs, with its old and new value."""
    before, after = (
        {name: one.get(name) for name in ("threads", "baseline", "calibration")} | options_of(one)
        for one in results
    )
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield name, (before.get(name), after.get(name))


def options_of(result: Entry) -> dict[str, Any]:
    """Return the options of an engine by their place in the configuration."""
    options: Mapping[str, Any] = result.get("options") or {}
    return {f"{result.get('engine')}.{name}": value for name, value in options.items()}


def of_code(old: Report, new: Report, keys: Collection[Key]) -> Iterator[Difference]:
    """Yield steps whose code differs, those of the same variants together.

    None where a summary has no digests.
    """
    digests = [one.document.get("code") or {} for one in (old, new)]
    steps: dict[frozenset[Key], list[str]] = {}
    for step in changed(digests, sorted(digests[0].keys() & digests[1].keys())):
        users = frozenset(key for key in keys if takes(new.results[key], step))
        steps.setdefault(users, []).append(step)
    for users, own in steps.items():
        before, after = ([one[step] for step in own] for one in digests)
        yield Difference("code", ", ".join(own), before, after, users)


def takes(result: Entry, step: str) -> bool:
    """Return whether a result comes from a step, as `build onnxruntime` or `calibrate`."""
    engine = step.partition(" ")[2]
    if engine:
        return engine == result.get("engine")
    return step not in OF_INT8 or bool(result.get("calibration"))


def touched(found: Iterable[Difference]) -> set[Key]:
    """Return the variants that some difference concerns."""
    return {key for one in found for key in one.concerns}


def retuned(found: Iterable[Difference]) -> set[Key]:
    """Return the variants whose own libraries, options or threads are different."""
    return touched(one for one in found if one.kind not in OF_ALL)


def by_likelihood(
    found: Collection[Difference], moved: Collection[Key], steady: Collection[Key]
) -> list[tuple[Difference, bool]]:
    """Return the differences, the likely cause first, each with whether it is one.

    `moved` are the variants that changed beyond the noise, `steady` those that did not. The most
    likely difference concerns most of the moved and fewest of the steady ones.
    """

    def fit(one: Difference) -> float:
        shares = [len(one.concerns & set(some)) / max(1, len(some)) for some in (moved, steady)]
        return shares[0] - shares[1]

    ordered = sorted(found, key=lambda one: -fit(one))  # stable: KINDS decides among equals
    return [(one, bool(one.concerns & set(moved))) for one in ordered]

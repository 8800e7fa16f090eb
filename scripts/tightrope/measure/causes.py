"""Causes of a profiled call's time that a setting removes: what that would save, and what it saves.

A profile tells where the time is, not what is left of it without the cause. So a saving is
predicted between two bounds, as shares of the call, and each cause says what its bounds assume.
The variant is then built again without each cause and timed in rounds with the one that has it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from msgspec import convert

from tightrope.artifacts.manifest import open_manifest, read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engine_table import ENGINES
from tightrope.engines.build import build_engine
from tightrope.errors import WorkFailed
from tightrope.jobs.child import failure
from tightrope.machine.cores import physical_cores, pinned_processors
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.rounds import rounds_of
from tightrope.measure.run import TimingSettings, batches_of, facts_of_run
from tightrope.measure.timed_engine import timed_engine
from tightrope.records.profile import (
    PREFIX,
    CausesRecord,
    Group,
    ProfiledShape,
    ProfileRecord,
    RemovedCause,
)
from tightrope.runtimes.operator_times import ATTENTION, ELEMENTWISE, PRODUCTS
from tightrope.variants import UNQUANTIZED, Variant, parse

# shares of the call that a cause holds and that its removal may save at least, else it is not named
NAMED, LEAST = 0.1, 0.05
# the same engine with bf16 in the place of fp32
IN_BF16 = {"fp32": "bf16", "int8": "int8-bf16"}
SOFTMAX, MOVES = "softmax", "moves"


class Change(NamedTuple):
    """An engine without the cause: its variant, options of its build, and threads."""

    variant: str
    options: dict[str, Any]
    threads: int


class Cause(NamedTuple):
    """A cause in words, the setting that removes it, and the share of the call that this saves."""

    cause: str
    setting: str
    change: Change
    low: float
    high: float


class Profiled(NamedTuple):
    """A profiled call: an entry of `shapes` of a ProfileRecord, and how the engine is made.

    `cores` are those that the machine has, `peaks` its own.
    """

    call: ProfiledShape
    variant: Variant
    options: Mapping[str, Any]
    threads: int
    cores: int
    peaks: Mapping[str, Any]

    def changed(self, **changes: Any) -> Change:
        """Return the engine with other `variant`, `options` or `threads`."""
        own = {"variant": str(self.variant), "options": self.options, "threads": self.threads}
        return Change(**{**own, **changes})

    def share(self, *groups: str) -> float:
        """Return the share of the call that the operators of some groups take."""
        factor = (self.call.profiler_factor or 1.0) / self.call.call_s
        return factor * sum(group.seconds for group in self.among(groups))

    def among(self, groups: Iterable[str]) -> list[Group]:
        """Return those of these groups of operators that the call has."""
        return [self.call.groups[name] for name in groups if name in self.call.groups]


def causes(profiled: Profiled) -> list[Cause]:
    """Return the causes of a call whose operators are timed, none where they are not."""
    if not profiled.call.groups:
        return []
    found = (cause for rule in RULES for cause in rule(profiled))
    return [one for one in found if one.high >= LEAST]


def padding(profiled: Profiled) -> Iterator[Cause]:
    """Yield tokens or images that only pad the request up to its bucket.

    Low: what compute bounds shrinks with the tokens; overhead stays, and memory may be weights.
    High: all shrinks, attention with the square of the tokens, and what memory bounds is gone,
    because it fits in caches.
    """
    call, buckets = profiled.call, profiled.options.get("buckets")
    share = call.padding or 0.0
    if not buckets or share < NAMED:
        return
    exact = {axis: [call.sizes[axis]] for axis in buckets}
    words = ", ".join(f"{axis}: {sizes}" for axis, sizes in exact.items())
    square = profiled.share(ATTENTION, SOFTMAX) * share * (1 - share)
    cached = call.shares["memory"] * (1 - share)
    yield Cause(
        f"{100 * share:.0f} % of the request is padding",
        f"buckets: {{{words}}}",
        profiled.changed(options={**profiled.options, "buckets": exact}),
        share * call.shares["compute"],
        min(1.0, share + square + cached),
    )


def idle_cores(profiled: Profiled) -> Iterator[Cause]:
    """Yield cores that are not used.

    Low: only what is bound by compute gets faster, since cores share their memory. High: all does.
    """
    idle = 1 - profiled.threads / profiled.cores
    if idle <= 0:
        return
    yield Cause(
        f"{profiled.threads} of {profiled.cores} cores are used",
        f"threads: {profiled.cores}",
        profiled.changed(threads=profiled.cores),
        idle * profiled.call.shares["compute"],
        idle,
    )


def fp32(profiled: Profiled) -> Iterator[Cause]:
    """Yield operators that compute in fp32 where this machine's bf16 is faster.

    Attention of an engine in int8 computes in fp32, whatever the type of its inputs. Low: the
    arithmetic of products at the peaks, where their operations are known; how much of attention is
    softmax is not. High: both take what their arithmetic takes at the peak of bf16, and other
    operators half the time, for half the bytes.
    """
    variant, peaks = profiled.variant, profiled.peaks["operations_per_s"]
    other = IN_BF16.get(variant.precision)
    if other not in ENGINES[variant.engine].precisions[variant.device]:
        return
    if not peaks.get("bf16", 0.0) > peaks["fp32"]:
        return
    heavy = [ATTENTION] if variant.precision == "int8" else [PRODUCTS, ATTENTION]
    light = profiled.call.groups.keys() - {PRODUCTS, ATTENTION}
    share = profiled.share(*heavy)
    if share < NAMED:
        return
    call_s = profiled.call.call_s
    compute = profiled.among(set(heavy) - {ATTENTION})
    products = sum(group.operations for group in compute) / call_s
    least = sum(group.operations for group in profiled.among(heavy)) / call_s / peaks["bf16"]
    yield Cause(
        f"{' and '.join(heavy)} in fp32: {100 * share:.0f} % of the time",
        f"engines: {{{variant.engine}: [{other}]}}",
        profiled.changed(variant=str(variant._replace(precision=other))),
        products * (1 / peaks["fp32"] - 1 / peaks["bf16"]),
        max(0.0, share - least) + profiled.share(*light) / 2,
    )


def separate_operators(profiled: Profiled) -> Iterator[Cause]:
    """Yield attention in several operators, where ONNX Runtime can have one in their place.

    Low: nothing, because the products in it stay. High: all that is between the products.
    """
    groups, options = profiled.call.groups, profiled.options
    separate = SOFTMAX in groups and ATTENTION not in groups
    if profiled.variant.precision not in UNQUANTIZED or not separate:
        return
    if options.get("attention_operator") is not False:
        return
    share = profiled.share(SOFTMAX, MOVES, ELEMENTWISE)
    yield Cause(
        f"attention is several operators: {100 * share:.0f} % of the time is between products",
        "onnxruntime: {attention_operator: true}",
        profiled.changed(options={**options, "attention_operator": True}),
        0.0,
        share,
    )


Rule = Callable[[Profiled], Iterator[Cause]]
RULES: Sequence[Rule] = (padding, idle_cores, fp32, separate_operators)


# an entry of `causes` of the record, the index of its shape, and the engine without the cause
Entry = tuple[RemovedCause, int, Change]


def sources_of(inputs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the inputs of a build among those of a job, by their names in the build's rule."""
    return {name.removeprefix(PREFIX): path for name, path in inputs if name.startswith(PREFIX)}


def verify_causes(
    artifacts: Artifacts,
    sources: Mapping[str, str],
    profile: Path | str,
    target: Path | str,
    settings: TimingSettings,
    *,
    model: str,
    variant: str,
) -> None:
    """Write the CausesRecord of `variant`, whose ProfileRecord is `profile`.

    `sources` are the inputs of a build by their names in its rule. A variant that could not be
    profiled is a failed record; without causes the record is empty. A transient failure raises
    TightropeError unless this is the last attempt.
    """
    execution = settings.execution
    profiled = ProfileRecord.read(profile)
    cores = max(execution.threads, physical_cores())
    record = CausesRecord(
        **facts_of_run(artifacts, execution, model=model, variant=variant),
        threads=execution.threads,
        processors=pinned_processors(cores),
    )
    record.reason = profiled.reason or profiled.unprofiled
    if record.reason is not None:
        record.status = "failed"
    else:
        machine = settings.machine(record.processors)
        entries = entries_of(profiled, artifacts.engine, cores)
        record.causes = [entry for entry, *_ in entries]
        Pairs(artifacts, sources, settings, machine).fill(entries)
        record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.write(target)


def entries_of(profiled: ProfileRecord, engine: Path, cores: int) -> list[Entry]:
    """Return the entries of all causes at all shapes, without what is measured."""
    options = read_manifest(engine, EngineManifest)["options"]
    found: list[Entry] = []
    for index, call in enumerate(profiled.shapes):
        variant, peaks = parse(profiled.variant), profiled.peaks
        for one in causes(Profiled(call, variant, options, profiled.threads, cores, peaks)):
            words = {"cause": one.cause, "setting": one.setting, "low": one.low, "high": one.high}
            own = {**call.sizes, **words, "profiled_s": call.call_s}
            found.append((convert(own, RemovedCause), index, one.change))
    return found


@dataclass(frozen=True)
class Pairs:
    """A variant, beside an engine without a cause of its time that is built and deleted."""

    artifacts: Artifacts
    sources: Mapping[str, str]
    settings: TimingSettings
    machine: QuietMachine

    def fill(self, entries: Sequence[Entry]) -> None:
        """Set `rounds` or `reason` of each entry; engines that are alike are built once."""
        changes = [change for _, _, change in entries]
        for place, change in enumerate(changes):
            if change in changes[:place]:
                continue
            alike = [(entry, index) for entry, index, other in entries if other == change]
            try:
                self.measure(change, alike)
            except WorkFailed as error:
                reason = failure(error, change.variant, self.settings.execution.limits)["reason"]
                for entry, _ in alike:
                    entry.reason = None if entry.rounds else reason

    def measure(self, change: Change, alike: Sequence[tuple[RemovedCause, int]]) -> None:
        """Build the engine of `change` and set `rounds` of each entry, with its shape's index."""
        work = self.artifacts.engine.parents[2] / "work"
        work.mkdir(parents=True, exist_ok=True)
        execution, checkpoint = self.settings.execution, self.artifacts.checkpoint
        inputs = checkpoint, batches_of(self.settings, checkpoint, self.artifacts.data)
        with TemporaryDirectory(prefix="causes.", dir=work) as folder:
            changed = self.built(change, Path(folder))
            engines = [
                timed_engine(self.artifacts.engine, *inputs, threads=execution.threads),
                timed_engine(changed, *inputs, threads=change.threads),
            ]
            indices = [index for _, index in alike]
            measured = rounds_of(engines, execution.limits, self.machine, "causes", indices)
            for rounds, (entry, _) in zip(measured, alike, strict=True):
                entry.rounds = rounds

    def built(self, change: Change, folder: Path) -> Path:
        """Build the engine of `change` in `folder`; return its manifest, raise WorkFailed."""
        target = folder / "engines" / change.variant / "engine.json"
        sources = dict(self.sources)
        if parse(change.variant).quantized_as is not None:
            sources = {"source": str(self.artifacts.engine)}
        build_engine(
            change.variant,
            sources["source"],
            target,
            execution=replace(self.settings.execution, threads=change.threads),
            options=dict(change.options),
            samples={name: path for name, path in sources.items() if name != "source"},
        )
        manifest = open_manifest(target, EngineManifest)
        if manifest["status"] != "ok":
            raise WorkFailed(f"not built: {manifest['reason']}", transient=False)
        return target

"""Causes of a profiled call's time that a setting removes: what that would save, and what it saves.

A profile tells where the time is, not what is left of it without the cause. So a saving is
predicted between two bounds, as shares of the call, and each cause says what its bounds assume.
The variant is then built again without each cause and timed in rounds with the one that has it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tightrope.artifacts.manifest import Artifacts, open_manifest, read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engine_table import ENGINES
from tightrope.engines.build import build_engine
from tightrope.errors import WorkFailed
from tightrope.jobs.child import failure
from tightrope.machine.cores import physical_cores, pinned_processors
from tightrope.machine.interference import QuietMachine
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


# an entry of the record without what is measured, and the engine without the cause
Cause = tuple[RemovedCause, Change]


class Profiled(NamedTuple):
    """A profiled call: an entry of `shapes` of a ProfileRecord, and how the engine is made.

    `cores` are those that the machine has, `peaks` its operations per second by type.
    """

    call: ProfiledShape
    variant: Variant
    options: Mapping[str, Any]
    threads: int
    cores: int
    peaks: Mapping[str, float]

    def cause(self, cause: str, setting: str, low: float, high: float, **changes: Any) -> Cause:
        """Return a cause, in words, that an engine with these `changes` does not have."""
        known: Any = {**self.call.sizes, "profiled_s": self.call.call_s}
        entry = RemovedCause(cause=cause, setting=setting, low=low, high=high, **known)
        own = {"variant": str(self.variant), "options": self.options, "threads": self.threads}
        return entry, Change(**{**own, **changes})

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
    rules = padding, idle_cores, fp32, separate_operators
    found = (cause for rule in rules for cause in rule(profiled))
    return [(entry, change) for entry, change in found if entry.high >= LEAST]


def padding(profiled: Profiled) -> Iterator[Cause]:
    """Yield tokens or images that only pad the request up to its bucket.

    Low: what compute bounds shrinks with the tokens; overhead stays, and memory may be weights.
    High: all shrinks, attention with the square of the tokens, and what memory bounds is gone,
    because it fits in caches.
    """
    call, buckets = profiled.call, profiled.options.get("buckets")
    share = call.padding
    if not buckets or share < NAMED:
        return
    exact = {axis: [call.sizes[axis]] for axis in buckets}
    words = ", ".join(f"{axis}: {sizes}" for axis, sizes in exact.items())
    square = profiled.share(ATTENTION, SOFTMAX) * share * (1 - share)
    cached = call.shares["memory"] * (1 - share)
    yield profiled.cause(
        f"{100 * share:.0f} % of the request is padding",
        f"buckets: {{{words}}}",
        share * call.shares["compute"],
        min(1.0, share + square + cached),
        options={**profiled.options, "buckets": exact},
    )


def idle_cores(profiled: Profiled) -> Iterator[Cause]:
    """Yield cores that are not used.

    Low: only what is bound by compute gets faster, since cores share their memory. High: all does.
    """
    idle = 1 - profiled.threads / profiled.cores
    if idle <= 0:
        return
    yield profiled.cause(
        f"{profiled.threads} of {profiled.cores} cores are used",
        f"threads: {profiled.cores}",
        idle * profiled.call.shares["compute"],
        idle,
        threads=profiled.cores,
    )


def fp32(profiled: Profiled) -> Iterator[Cause]:
    """Yield operators that compute in fp32 where this machine's bf16 is faster.

    Attention of an engine in int8 computes in fp32, whatever the type of its inputs. Low: the
    arithmetic of products at the peaks, where their operations are known; how much of attention is
    softmax is not. High: both take what their arithmetic takes at the peak of bf16, and other
    operators half the time, for half the bytes.
    """
    variant, peaks = profiled.variant, profiled.peaks
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
    yield profiled.cause(
        f"{' and '.join(heavy)} in fp32: {100 * share:.0f} % of the time",
        f"engines: {{{variant.engine}: [{other}]}}",
        products * (1 / peaks["fp32"] - 1 / peaks["bf16"]),
        max(0.0, share - least) + profiled.share(*light) / 2,
        variant=str(variant._replace(precision=other)),
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
    yield profiled.cause(
        f"attention is several operators: {100 * share:.0f} % of the time is between products",
        "onnxruntime: {attention_operator: true}",
        0.0,
        share,
        options={**options, "attention_operator": True},
    )


def sources_of(inputs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the inputs of a build among those of a job, by their names in the build's rule."""
    return {name.removeprefix(PREFIX): path for name, path in inputs if name.startswith(PREFIX)}


def verify_causes(
    artifacts: Artifacts,
    sources: Mapping[str, str],
    profile: Path | str,
    target: Path | str,
    settings: TimingSettings,
) -> None:
    """Write the CausesRecord of a variant, whose ProfileRecord is `profile`.

    `sources` are the inputs of a build by their names in its rule. A variant that could not be
    profiled is a failed record; without causes the record is empty. A transient failure raises
    TightropeError unless this is the last attempt.
    """
    execution = settings.execution
    profiled = ProfileRecord.read(profile)
    cores = max(execution.threads, physical_cores())
    record = CausesRecord(
        **facts_of_run(artifacts, execution),
        threads=execution.threads,
        processors=pinned_processors(cores),
    )
    record.reason = profiled.reason or profiled.unprofiled
    if record.reason is not None:
        record.status = "failed"
    else:
        machine = settings.machine(record.processors)
        options = read_manifest(artifacts.engine, EngineManifest)["options"]
        peaks = profiled.peaks.operations_per_s if profiled.peaks else {}
        own = (parse(profiled.variant), options, profiled.threads, cores, peaks)
        found = [one for call in profiled.shapes for one in causes(Profiled(call, *own))]
        record.causes = [entry for entry, _ in found]
        pairs = Pairs(artifacts, sources, settings, machine)
        for first, change in found:
            alike = [entry for entry, other in found if other == change]
            if first is alike[0]:
                pairs.measure(change, alike)
        record.lost_s, record.busiest = machine.lost_s, machine.busiest
    record.write(target)


@dataclass(frozen=True)
class Pairs:
    """A variant, beside an engine without a cause of its time that is built and deleted."""

    artifacts: Artifacts
    sources: Mapping[str, str]
    settings: TimingSettings
    machine: QuietMachine

    def measure(self, change: Change, alike: Sequence[RemovedCause]) -> None:
        """Set `rounds` or `reason` of the entries whose cause the engine of `change` has not.

        It is built once for all of them.
        """
        work = self.artifacts.engine.parents[2] / "work"
        work.mkdir(parents=True, exist_ok=True)
        limits, checkpoint = self.settings.execution.limits, self.artifacts.checkpoint
        settings = replace(self.settings, shapes=[entry.sizes for entry in alike])
        try:
            with TemporaryDirectory(prefix="causes.", dir=work) as folder:
                made = {self.artifacts.engine: settings.execution.threads}
                made[self.built(change, Path(folder))] = change.threads
                inputs = checkpoint, batches_of(settings, checkpoint, self.artifacts.data)
                engines = [timed_engine(one, *inputs, threads=made[one]) for one in made]
                measured = rounds_of(engines, limits, self.machine, "causes", range(len(alike)))
                for rounds, entry in zip(measured, alike, strict=True):
                    entry.rounds = rounds
        except WorkFailed as error:
            reason = failure(error, change.variant, limits)["reason"]
            for entry in alike:
                entry.reason = None if entry.rounds else reason

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

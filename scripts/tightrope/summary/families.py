"""Families entries of summary.json: the members, each with its verdict, and their chart.

A family is a model, the root, with all models that start from it, directly or through another one.
"""

from collections.abc import Sequence
from typing import Literal

from tightrope.decide.result import (
    NO_SPEEDUP,
    Attempt,
    Entry,
    LatencyRow,
    Ratio,
    Result,
    Shape,
    interval_of,
    same,
)
from tightrope.machine.host import host_key
from tightrope.records.family import FamilyRecord, engine_name, model_and_variant
from tightrope.records.race import RacedShape, call_time, common_rounds, kept_rounds, ratio
from tightrope.records.record import causes
from tightrope.statistics import AccuracyVerdict, Interval
from tightrope.summary.accuracy import FamilyAccuracy, accuracy_between
from tightrope.summary.models import Checkpoints, FamilyMember, Judged, member_entries
from tightrope.summary.runs import Settings
from tightrope.variants import at_place

BUDGET: dict[AccuracyVerdict, str] = {
    "kept": "within the budget",
    "dropped": "outside the budget",
    "undecided": "too few examples to say whether within the budget",
}
# what an engine is compared with: one of the root, or of its model's parent
Against = Literal[
    "root_baseline", "root_recommended", "root_quantized", "parent_baseline", "parent_recommended"
]
Role = Literal["recommended", "baseline", "quantized"]


class FamilyChoice(Entry):
    """A variant of a member."""

    model: str
    variant: str
    """Its model and its name."""


class Comparison(FamilyChoice):
    """An engine against another, which is that of `model` and `variant`."""

    speedup: Ratio | None
    """From rounds of both; None where they did not run in the same ones."""
    accuracy: FamilyAccuracy | None
    """None without labels."""


class FamilyEngine(Entry):
    """An engine that was to be timed with those of the other models."""

    model: str
    variant: str | None
    """None if its model has none to recommend."""
    role: Role
    """Why it takes part: `recommended` by the race of its model (one per member), the root's
    `baseline`, or the root's best `quantized` one; the last two where they are not what is
    recommended for the root."""
    status: Attempt
    reason: str | None
    """Why it has no time, else None."""
    size_bytes: int | None
    energy_j: float | None
    """As in its result."""
    call_s: float | None
    low: float | None
    high: float | None
    """Time per call, see [FamilyPoint](#familypoint)."""
    top1: float | None
    samples: int | None
    """As in the accuracy of its result."""
    front: bool
    """See [FamilyPoint](#familypoint)."""
    against: dict[Against, Comparison]
    """Its comparisons but with itself: by `root_baseline`, `root_recommended`, `root_quantized`,
    `parent_baseline` and `parent_recommended`."""
    verdict: str | None
    """A sentence: its speed against its parent's recommended engine, that of the root against its
    baseline; its accuracy against the root's baseline. None for the roles other than
    `recommended`."""


class FamilyPoint(FamilyChoice):
    """A variant of a member that has a time, and a change of accuracy from the root's baseline."""

    recommended: bool
    """Whether it is its model's recommended one."""
    raced: bool
    """Whether it was timed in the shared rounds."""
    call_s: float
    low: float
    high: float
    """Time per call with its 95 % interval: that of the root's baseline over its speed-up. Of one
    that was not timed in the shared rounds: its `paired_s` over that of its model's recommended
    variant, times the `call_s` of that one."""
    delta: float
    delta_low: float
    delta_high: float
    """Change of accuracy from the root's baseline."""
    front: bool
    """By these estimates no other is as fast and as accurate, and better in one."""


class FamilyShape(Entry):
    """A family at one shape."""

    shape: Shape
    """At which the engines were timed."""
    fastest: FamilyChoice | None
    """The fastest of `engines` whose accuracy is `kept` against the root's baseline, or None."""
    rounds: int
    """How many were run."""
    stop: str | None
    """Why they ended: `precise`, `time limit` or `one left`."""
    disturbed: str | None
    """Why other load left too few rounds for a ratio, else None."""
    provisional: bool
    """Whether the numbers are those of disturbed rounds."""
    engines: list[FamilyEngine]
    """The recommended one of each member, and the root's two others."""
    points: list[FamilyPoint]
    """The fastest first."""


class Family(Entry):
    """A model with all models that start from it, directly or through another one."""

    root: str
    host: str
    device: str
    """The model, and where the family was timed."""
    status: Attempt
    reason: str | None
    """Why, where fewer than two engines were there to compare; else None."""
    measured: str
    """When, in UTC."""
    members: list[FamilyMember]
    """The root, and after each model those that start from it."""
    shapes: list[FamilyShape]
    """Empty where nothing could be timed."""


def family_entry(
    record: FamilyRecord,
    results: Sequence[Result],
    judged: Judged,
    checkpoints: Checkpoints,
    settings: Settings,
) -> Family:
    """Return the entry of a record; without shapes where nothing could be timed."""
    members = member_entries(record.model, checkpoints, record.unraced)
    known = results, judged, settings
    places = range(len(record.heats[0].shapes)) if record.heats else ()
    return Family(
        root=record.model,
        host=host_key(record.host),
        **same(record, "device", "status", "reason", "measured"),
        members=members,
        shapes=[AtShape(record, place, members, *known).entry() for place in places],
    )


class AtShape:
    """A family at the shape with index `place`: its rounds, and the results of all its variants.

    Engines have the names of the record; one that failed has no role. All times follow from that of
    one engine: the root's baseline, else its recommended engine.
    """

    def __init__(
        self,
        record: FamilyRecord,
        place: int,
        members: list[FamilyMember],
        results: Sequence[Result],
        judged: Judged,
        settings: Settings,
    ) -> None:
        self.record, self.members, self.judged, self.settings = record, members, judged, settings
        self.heats = [heat.shapes[place] for heat in record.heats]
        self.shape, self.host = Shape(**self.heats[0].sizes), host_key(record.host)
        roles, failed = record.roles[place], record.left_out
        self.chosen = {model: one for model, one in roles.chosen.items() if one not in failed}
        self.baseline = None if roles.baseline in failed else roles.baseline
        self.quantized = None if roles.quantized in failed else roles.quantized
        first = [self.baseline, self.chosen.get(record.model), *self.chosen.values()]
        self.anchor = next((one for one in first if one), None)
        self.anchor_s = call_time(self.heats, self.anchor) if self.anchor else None
        models = {one.model for one in members}
        self.results = {
            engine_name(one.model, one.variant): one
            for one in results
            if one.host == self.host and one.model in models
        }
        self.rows: dict[str, LatencyRow] = {
            name: row
            for name, one in self.results.items()
            if one.device == record.device and (row := one.at(self.shape))
        }

    def entry(self) -> FamilyShape:
        """Return the entry of the shape."""
        points = self.points()
        engines, disturbed = self.engines(points), self.disturbed()
        return FamilyShape(
            shape=self.shape,
            fastest=fastest(engines),
            rounds=sum(len(heat.loads) for heat in self.heats),
            stop=self.heats[-1].stop,
            disturbed=disturbed,
            provisional=bool(disturbed and self.settings.accept_disturbed),
            engines=engines,
            points=points,
        )

    def shared(self, one: str, other: str) -> RacedShape | None:
        """Return the first heat of both engines, None where they never ran in the same rounds."""
        both = {one, other}
        return next((heat for heat in self.heats if both <= heat.blocks_s.keys()), None)

    def interval(self, one: str, other: str) -> Interval | None:
        """Return the speed-up of `one` over `other`, None without enough rounds of both."""
        if one == other:
            return Interval(1.0, 1.0, 1.0)
        if (heat := self.shared(one, other)) is None:
            return None
        kept = kept_rounds(heat, one, other, accept=self.settings.accept_disturbed)
        return ratio(heat, one, other, all_rounds=kept.provisional)

    def speedup(self, one: str, other: str) -> Ratio | None:
        """Return the entry of the speed-up of `one` over `other`.

        Its numbers are None where it was disturbed; None where both did not run together.
        """
        if found := self.interval(one, other):
            return Ratio.of(found)
        heat = self.shared(one, other)
        ran = heat and common_rounds(heat, one, other, all_rounds=True)
        return NO_SPEEDUP if ran else None

    def seconds(self, name: str) -> Interval | None:
        """Return the seconds per call of an engine, with the interval of its speed-up."""
        own, faster = self.anchor_s, self.interval(name, self.anchor) if self.anchor else None
        if own is None or faster is None or not faster.low:
            return None
        return Interval(own / faster.value, own / faster.high, own / faster.low)

    def disturbed(self) -> str | None:
        """Return why other load left too few rounds for the ratio of a pair; None if it did not."""
        for heat in self.heats:
            for pair in heat.pairs:
                if left := kept_rounds(heat, *pair).disturbed:
                    facts = [fact for name in pair for fact in heat.facts[name] if fact]
                    words = causes(facts, heat.foreign_cores, self.record.busiest)
                    return f"other load disturbed the rounds: {left}; {words}"
        return None

    def engines(self, points: Sequence[FamilyPoint]) -> list[FamilyEngine]:
        """Return the recommended engine of each member, and the root's two others."""
        front = {engine_name(one.model, one.variant) for one in points if one.front}
        root, recommended = self.members[0], self.chosen.get(self.record.model)
        found = [
            self.engine(one, self.chosen.get(one.model), "recommended", front)
            for one in self.members
        ]
        others: dict[Role, str | None] = {"baseline": self.baseline, "quantized": self.quantized}
        for role, name in others.items():
            if name and name != recommended:
                found.append(self.engine(root, name, role, front))
        return found

    def engine(
        self, member: FamilyMember, name: str | None, role: Role, front: set[str]
    ) -> FamilyEngine:
        """Return the entry of an engine of a member; `front` are the engines on the front."""
        result, row = self.results.get(name or ""), self.rows.get(name or "")
        time = self.seconds(name) if name else None
        call_s, low, high = time or (None, None, None)
        accuracy = result.accuracy if result else None
        against = self.against(member, name) if name else {}
        return FamilyEngine(
            model=member.model,
            variant=model_and_variant(name)[1] if name else None,
            role=role,
            status="ok" if time else "failed",
            reason=None if time else self.lacks(member, name),
            size_bytes=result.size_bytes if result else None,
            energy_j=row.energy_j if row else None,
            call_s=call_s,
            low=low,
            high=high,
            top1=accuracy.top1 if accuracy else None,
            samples=accuracy.samples if accuracy else None,
            front=name in front,
            against=against,
            verdict=member_verdict(member.model, against) if role == "recommended" else None,
        )

    def lacks(self, member: FamilyMember, name: str | None) -> str:
        """Return why an engine of a member has no time."""
        if name is not None:
            return self.disturbed() or "it was not timed with the root's baseline"
        failed = [
            f"{variant}: {reason}"
            for one, reason in self.record.left_out.items()
            for model, variant in [model_and_variant(one)]
            if model == member.model
        ]
        return member.reason or "; ".join(failed) or "no variant has a latency at this shape"

    def baseline_of(self, model: str) -> str:
        """Return the name of the baseline of a model where the family was timed."""
        names, device = self.settings.baselines[model], self.record.device
        return engine_name(model, at_place(names, device, self.host) or names[device])

    def against(self, member: FamilyMember, name: str) -> dict[Against, Comparison]:
        """Return what an engine is compared with: those of the root, and of the parent."""
        root, parent = self.record.model, member.parent
        others: dict[Against, str | None] = {
            "root_baseline": self.baseline_of(root),
            "root_recommended": self.chosen.get(root),
            "root_quantized": self.quantized,
            "parent_baseline": self.baseline_of(parent) if parent else None,
            "parent_recommended": self.chosen.get(parent or ""),
        }
        found: dict[Against, Comparison] = {}
        for role, other in others.items():
            if other and other != name:
                both = self.speedup(name, other), self.accuracy(name, other)
                found[role] = Comparison(*model_and_variant(other), *both)
        return found

    def accuracy(self, name: str, other: str) -> FamilyAccuracy | None:
        """Return the change of accuracy from `other`, maybe of another model, to an engine."""
        own, reference = (self.judged.get(model_and_variant(one)) for one in (name, other))
        return accuracy_between(own, reference, self.settings.budget)

    def points(self) -> list[FamilyPoint]:
        """Return the variants that have a time and an accuracy, the fastest first.

        On the `front`, by estimates, no other is as good and better in one.
        """
        found: list[FamilyPoint] = []
        baseline = self.baseline_of(self.record.model)
        for name, row in self.rows.items():
            model, variant = model_and_variant(name)
            accuracy, raced = self.accuracy(name, baseline), self.seconds(name)
            time = raced or self.scaled(model, row)
            if time is None or accuracy is None or accuracy.change is None:
                continue
            point = FamilyPoint(
                model=model,
                variant=variant,
                recommended=self.chosen.get(model) == name,
                raced=raced is not None,
                call_s=time.value,
                **same(time, "low", "high"),
                **same(accuracy.change, "delta", "delta_low", "delta_high"),
                front=False,
            )
            found.append(point)
        found.sort(key=lambda point: (point.call_s, -point.delta))
        best = float("-inf")
        for point in found:
            point.front = point.delta > best
            best = max(best, point.delta)
        return found

    def scaled(self, model: str, row: LatencyRow) -> Interval | None:
        """Return the time of a variant that was not timed with those of the other models.

        Its interval is that of its speed-up over its model's baseline.
        """
        name = self.chosen.get(model, "")
        here, there = self.seconds(name) if name else None, self.rows.get(name)
        if here is None or there is None or not there.paired_s or row.paired_s is None:
            return None
        value = row.paired_s / there.paired_s * here.value
        faster = interval_of(row.speedup)
        if faster is None or not faster.low:
            return Interval(value, value, value)
        return Interval(value, *(value * faster.value / end for end in (faster.high, faster.low)))


def fastest(engines: Sequence[FamilyEngine]) -> FamilyChoice | None:
    """Return the fastest of these whose accuracy is kept against the root's baseline.

    Without labels, and of the baseline itself, it is.
    """
    found: list[tuple[float, str, str]] = []
    for one in engines:
        against = one.against.get("root_baseline")
        accuracy = against.accuracy if against else None
        keeps = accuracy is None or (accuracy.change and accuracy.change.verdict == "kept")
        if keeps and one.variant is not None and one.call_s is not None:
            found.append((one.call_s, one.model, one.variant))
    return FamilyChoice(*min(found, key=lambda one: one[0])[1:]) if found else None


def member_verdict(model: str, against: dict[Against, Comparison]) -> str | None:
    """Return the verdict on the recommended engine of `model`, None without any comparison.

    Its speed is compared with its parent's recommended engine, that of the root with its baseline;
    its accuracy with the root's baseline, which the budget is relative to.
    """
    own = against.get("parent_recommended") or against.get("root_baseline")
    root = against.get("root_baseline")
    parts = []
    if own and own.speedup:
        of = "its baseline" if own.model == model else f"the best of {own.model}"
        parts.append(speed_words(own.speedup, of))
    if root and root.accuracy:
        of = "its baseline" if root.model == model else f"{root.model} ({root.variant})"
        parts.append(accuracy_words(root.accuracy, of))
    return ", ".join(parts) or None


def speed_words(speedup: Ratio, of: str) -> str:
    """Format a speed-up over something: `2.1 times as fast as the best of large`."""
    if speedup.verdict == "disturbed":
        return f"not compared in speed with {of}: disturbed by other load"
    if speedup.verdict == "tie":
        return f"as fast as {of}"
    return f"{speedup.ratio:.2g} times as fast as {of}"


def accuracy_words(accuracy: FamilyAccuracy, of: str) -> str:
    """Format a change of accuracy: `0.4 points less accurate than large (…): within the budget`."""
    if (change := accuracy.change) is None:
        return f"not compared in accuracy with {of}: {accuracy.reason}"
    size, budget = f"{100 * abs(change.delta):.1f}", BUDGET[change.verdict]
    if size == "0.0":
        return f"as accurate as {of}: {budget}"
    return f"{size} points {'less' if change.delta < 0 else 'more'} accurate than {of}: {budget}"

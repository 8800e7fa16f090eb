"""Types of the entries on families, their members and ratios from the same rounds.

A family is a model, the root, with all models that start from it, directly or through another one.
docs/summary-json.md describes the fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from msgspec.structs import asdict

from tightrope.records.accuracy import AccuracyRecord, comparable, compared
from tightrope.records.family import (
    FamilyRecord,
    engine_name,
    has_rounds,
    measured_ratio,
    model_and_variant,
)
from tightrope.records.family import FamilyShape as RecordedShape
from tightrope.records.race import FEWEST_ROUNDS, common_rounds
from tightrope.records.record import call_seconds
from tightrope.statistics import AccuracyVerdict, Interval
from tightrope.summary.legacy import NO_CHANGE, AccuracyChange, change_of, interval_of, ratio_entry, shape_of
from tightrope.summary.measured import causes
from tightrope.summary.result_types import Attempt, LatencyRow, Ratio, Result, Shape
from tightrope.summary.results import NO_SPEEDUP

# what an engine is compared with: one of the root, or of its model's parent
Against = Literal[
    "root_baseline", "root_recommended", "root_quantized", "parent_baseline", "parent_recommended"
]
# accuracy records by model and variant
Judged = Mapping[tuple[str, str], AccuracyRecord]
# latency rows of a shape by model and variant
Rows = Mapping[tuple[str, str], LatencyRow]


class FamilyMember(TypedDict):
    """A model of the family: its parent and what was changed of it.

    `changes` has `prune`, `activation`, `distill`, `qat` and `train`, each where the
    checkpoint's manifest has it. `reason` says why no engine of it was timed.
    """

    model: str
    parent: str | None
    changes: dict[str, Any]
    parameters: int
    reason: str | None


class FamilyAccuracy(AccuracyChange):
    """Change of accuracy on the same examples, None with the `reason` where they were not."""

    verdict: AccuracyVerdict | None
    flips: int | None
    reason: str | None


class Comparison(TypedDict):
    """An engine against one of another model, or of the same one.

    `speedup` comes from rounds of both, None where they did not run in the same ones. `accuracy` is
    None without labels.
    """

    model: str
    variant: str
    speedup: Ratio | None
    accuracy: FamilyAccuracy | None


class FamilyEngine(TypedDict):
    """An engine that was timed with those of the other models, or the `reason` why it was not.

    `role` says why it took part: `recommended` by the race of its model, the root's `baseline`, or
    the root's best `quantized` one. `call_s` with its interval is on the scale of the points.
    `verdict` is a sentence, None for the roles other than `recommended`.
    """

    model: str
    variant: str | None
    role: Literal["recommended", "baseline", "quantized"]
    status: Attempt
    reason: str | None
    size_bytes: int | None
    energy_j: float | None
    call_s: float | None
    low: float | None
    high: float | None
    top1: float | None
    samples: int | None
    front: bool
    against: dict[Against, Comparison]
    verdict: str | None


class FamilyPoint(TypedDict):
    """A variant of a model: its time per call, and its accuracy change from the root's baseline.

    The time of one that was not timed with the others (`raced`) is its own over that of its model's
    recommended variant, times the time of that one here.
    """

    model: str
    variant: str
    recommended: bool
    raced: bool
    call_s: float
    low: float
    high: float
    delta: float
    delta_low: float
    delta_high: float
    front: bool


class FamilyChoice(TypedDict):
    """The fastest recommended engine whose accuracy surely keeps the budget of the root."""

    model: str
    variant: str


class FamilyShape(TypedDict):
    """A family at one shape; `provisional` numbers are those of disturbed rounds."""

    shape: Shape
    fastest: FamilyChoice | None
    rounds: int
    stop: str | None
    disturbed: str | None
    provisional: bool
    engines: list[FamilyEngine]
    points: list[FamilyPoint]


class Family(TypedDict):
    """A family on one device."""

    root: str
    host: str
    device: str
    status: Attempt
    reason: str | None
    measured: str
    members: list[FamilyMember]
    shapes: list[FamilyShape]


def accuracy_against(
    record: AccuracyRecord | None, reference: AccuracyRecord | None, budget: float
) -> FamilyAccuracy | None:
    """Return the change of accuracy of `record` from `reference`, which may be another model's.

    None without predictions or labels. `budget` is a fraction.
    """
    if record is None or not record.predictions or record.labels is None:
        return None
    if reference is None or not reference.predictions or reference.labels is None:
        return not_compared("the other one has no accuracy")
    if reference.data_sha256 != record.data_sha256:
        return not_compared("evaluated on other examples")
    if not comparable(record, reference):
        return not_compared("evaluated on a machine with other numerics")
    both = zip(record.predictions, reference.predictions, strict=False)
    return {
        **asdict(compared(record, reference, budget)),
        "flips": sum(ours != theirs for ours, theirs in both),
        "reason": None,
    }


def not_compared(reason: str) -> FamilyAccuracy:
    """Return the entry of a pair that cannot be compared."""
    return {**NO_CHANGE, "verdict": None, "flips": None, "reason": reason}


@dataclass(frozen=True)
class FamilyRounds:
    """The heats of a record at the shape with index `place`.

    With `accept_disturbed` disturbed rounds count where too few others are left.
    """

    record: FamilyRecord
    place: int
    accept_disturbed: bool

    @property
    def heats(self) -> list[RecordedShape]:
        """Return the shape of each heat."""
        return [heat.shapes[self.place] for heat in self.record.heats]

    @property
    def chosen(self) -> dict[str, str]:
        """Return the recommended engine of each model, without those that failed."""
        chosen = self.heats[0].chosen
        return {model: name for model, name in chosen.items() if name not in self.record.left_out}

    def engine(self, role: Literal["baseline", "quantized"]) -> str | None:
        """Return the root's `baseline` or its best `quantized` engine, None if it failed."""
        name: str | None = getattr(self.heats[0], role)
        return None if name in self.record.left_out else name

    def interval(self, one: str, other: str) -> Interval | None:
        """Return the speed-up of `one` over `other`, None without enough rounds of both."""
        if one == other:
            return Interval(1.0, 1.0, 1.0)
        found = measured_ratio(self.heats, one, other)
        if found is None and self.accept_disturbed:
            found = measured_ratio(self.heats, one, other, all_rounds=True)
        return found

    def speedup(self, one: str, other: str) -> Ratio | None:
        """Return the entry of the speed-up of `one` over `other`.

        Its numbers are None where it was disturbed; None where both did not run together.
        """
        found = self.interval(one, other)
        if found is not None:
            return ratio_entry(found)
        return NO_SPEEDUP if has_rounds(self.heats, one, other) else None

    def anchor(self) -> str | None:
        """Return the engine from whose time those of all others follow: the root's baseline."""
        root = self.chosen.get(self.record.model)
        return self.engine("baseline") or root or next(iter(self.chosen.values()), None)

    def seconds(self, name: str) -> Interval | None:
        """Return the seconds per call of an engine: those of the anchor over its speed-up.

        The interval is that of the speed-up.
        """
        anchor = self.anchor()
        own = call_time(self.heats, anchor) if anchor else None
        faster = self.interval(name, anchor) if anchor else None
        if own is None or faster is None or not faster.low:
            return None
        return Interval(own / faster.value, own / faster.high, own / faster.low)

    def disturbed(self) -> str | None:
        """Return why other load left too few rounds for the ratio of a pair; None if it did not."""
        for heat in self.heats:
            for one, other in heat.pairs:
                rounds = common_rounds(heat, one, other, all_rounds=True)
                kept = len(common_rounds(heat, one, other))
                if kept < FEWEST_ROUNDS <= len(rounds):
                    facts = [fact for name in (one, other) for fact in heat.facts[name] if fact]
                    words = causes(facts, heat.foreign_cores, self.record.busiest)
                    left = f"{kept} of {len(rounds)} rounds are left of {one} and {other}"
                    return f"other load disturbed the rounds: {left}; {words}"
        return None

    def rounds(self) -> int:
        """Return how many rounds were measured."""
        return sum(len(heat.loads) for heat in self.heats)


def call_time(heats: list[RecordedShape], name: str) -> float | None:
    """Return the seconds per call of an engine; of all its rounds if all were disturbed."""
    for heat in heats:
        for all_rounds in (False, True):
            if name not in heat.blocks_s:
                continue
            rounds = common_rounds(heat, name, name, all_rounds=all_rounds)
            if rounds:
                return call_seconds([heat.blocks_s[name][at] or [] for at in rounds]).value
    return None


def rows_at(results: Sequence[Result], host: str, device: str, shape: Shape) -> Rows:
    """Return the rows of all models on a host and device at a shape."""
    return {
        (result["model"], result["variant"]): row
        for result in results
        if (result["host"], result["device"]) == (host, device)
        for row in result["latency"]
        if shape_of(row) == shape
    }


def family_points(
    rounds: FamilyRounds,
    members: Sequence[str],
    rows: Rows,
    judged: Judged,
    baseline: tuple[str, str],
    budget: float,
) -> list[FamilyPoint]:
    """Return the variants of the members that have a time and an accuracy, the fastest first.

    `baseline` is the root's, by model and variant.
    """
    found: list[FamilyPoint] = []
    for (model, variant), row in rows.items():
        name = engine_name(model, variant)
        accuracy = accuracy_against(judged.get((model, variant)), judged.get(baseline), budget)
        change = change_of(accuracy) if accuracy and model in members else None
        raced = rounds.seconds(name)
        time = raced or scaled(model, row, rows, rounds)
        if time is None or change is None:
            continue
        found.append(
            {
                "model": model,
                "variant": variant,
                "recommended": rounds.chosen.get(model) == name,
                "raced": raced is not None,
                "call_s": time.value,
                "low": time.low,
                "high": time.high,
                "delta": change.value,
                "delta_low": change.low,
                "delta_high": change.high,
                "front": False,
            }
        )
    found.sort(key=lambda point: (point["call_s"], -point["delta"]))
    return with_front(found)


def scaled(model: str, row: LatencyRow, rows: Rows, rounds: FamilyRounds) -> Interval | None:
    """Return the time of a variant that was not timed with those of the other models.

    Its interval is that of its speed-up over its model's baseline.
    """
    name = rounds.chosen.get(model)
    here = rounds.seconds(name) if name else None
    there = rows[model_and_variant(name)] if name and model_and_variant(name) in rows else None
    own = row["paired_s"]
    if here is None or there is None or not there["paired_s"] or own is None:
        return None
    value = own / there["paired_s"] * here.value
    faster = interval_of(row["speedup"])
    if faster is None or not faster.low:
        return Interval(value, value, value)
    return Interval(value, value * faster.value / faster.high, value * faster.value / faster.low)


def with_front(points: Sequence[FamilyPoint]) -> list[FamilyPoint]:
    """Return the points with `front`, by their estimates: no other is as good and better in one.

    `points` are the fastest first, of equally fast ones the most accurate first.
    """
    best = float("-inf")
    for point in points:
        point["front"] = point["delta"] > best
        best = max(best, point["delta"])
    return [*points]

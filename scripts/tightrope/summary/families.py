"""Families entries of summary.json: the members, each with its verdict, and their chart."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tightrope.artifacts.descent import parent_of
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.machine.host import host_key
from tightrope.records.family import FamilyRecord, engine_name, model_and_variant
from tightrope.statistics import AccuracyVerdict
from tightrope.summary.family_points import (
    Against,
    Comparison,
    Family,
    FamilyAccuracy,
    FamilyChoice,
    FamilyEngine,
    FamilyMember,
    FamilyPoint,
    FamilyRounds,
    FamilyShape,
    Judged,
    Rows,
    accuracy_against,
    family_points,
    rows_at,
)
from tightrope.summary.legacy import shape_of
from tightrope.summary.result_types import Ratio, Result
from tightrope.variants import at_place

BUDGET: dict[AccuracyVerdict, str] = {
    "kept": "within the budget",
    "dropped": "outside the budget",
    "undecided": "too few examples to say whether within the budget",
}
# fields of a checkpoint's manifest with a change, by the key of the configuration
CHANGES = {
    "prune": "prune",
    "activation": "activation",
    "distill": "distill",
    "qat": "qat",
    "train": "recipe",
}
# manifests of checkpoints by model
Checkpoints = Mapping[str, CheckpointManifest]
Baselines = Mapping[str, Mapping[str, str]]


def member_verdict(model: str, against: dict[Against, Comparison]) -> str | None:
    """Return the verdict on the recommended engine of `model`, None without any comparison.

    Its speed is compared with its parent's recommended engine, that of the root with its baseline;
    its accuracy with the root's baseline, which the budget is relative to.
    """
    own = against.get("parent_recommended") or against.get("root_baseline")
    root = against.get("root_baseline")
    parts = []
    if own and own["speedup"]:
        of = "its baseline" if own["model"] == model else f"the best of {own['model']}"
        parts.append(speed_words(own["speedup"], of))
    if root and root["accuracy"]:
        of = "its baseline" if root["model"] == model else f"{root['model']} ({root['variant']})"
        parts.append(accuracy_words(root["accuracy"], of))
    return ", ".join(parts) or None


def speed_words(speedup: Ratio, of: str) -> str:
    """Format a speed-up over something: `2.1 times as fast as the best of large`."""
    match speedup["verdict"]:
        case "disturbed":
            return f"not compared in speed with {of}: disturbed by other load"
        case "tie":
            return f"as fast as {of}"
        case _:
            return f"{speedup['ratio']:.2g} times as fast as {of}"


def accuracy_words(accuracy: FamilyAccuracy, of: str) -> str:
    """Format a change of accuracy: `0.4 points less accurate than large (…): within the budget`."""
    delta, verdict = accuracy["delta"], accuracy["verdict"]
    if delta is None or verdict is None:
        return f"not compared in accuracy with {of}: {accuracy['reason']}"
    size = f"{100 * abs(delta):.1f}"
    if size == "0.0":
        return f"as accurate as {of}: {BUDGET[verdict]}"
    return f"{size} points {'less' if delta < 0 else 'more'} accurate than {of}: {BUDGET[verdict]}"


def read_checkpoints(paths: Iterable[Path | str]) -> Checkpoints:
    """Return the manifest of each model's checkpoint."""
    return {
        Path(path).parent.parent.name: open_manifest(path, CheckpointManifest) for path in paths
    }


def member_entries(
    root: str, checkpoints: Checkpoints, reasons: Mapping[str, str]
) -> list[FamilyMember]:
    """Return the root, and after each model those that start from it.

    `reasons` say why no engine of a model was timed.
    """
    made = checkpoints[root]
    entry: FamilyMember = {
        "model": root,
        "parent": parent_of(made),
        "changes": changes_of(made),
        "parameters": made["parameters"],
        "reason": reasons.get(root),
    }
    children = [name for name, one in checkpoints.items() if parent_of(one) == root]
    return [
        entry,
        *(one for name in children for one in member_entries(name, checkpoints, reasons)),
    ]


def changes_of(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was changed of a model, by the key of the configuration.

    Not the ranges that it learnt, which are many, only whether some are of outputs.
    """
    found = {key: without_nothing(checkpoint.get(name)) for key, name in CHANGES.items()}
    if found["qat"]:
        outputs = {"outputs": True} if "outputs" in found["qat"] else {}
        found["qat"] = {"scheme": found["qat"]["scheme"], **outputs}
    return {key: value for key, value in found.items() if value}


def without_nothing(value: Any) -> Any:
    """Return a value, of several by name those that are not None."""
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if one is not None}
    return value


class Known(NamedTuple):
    """What families are described from; `budget` is a fraction."""

    results: Sequence[Result]
    judged: Judged
    checkpoints: Checkpoints
    baselines: Baselines
    budget: float
    accept_disturbed: bool


def family_entries(records: Iterable[FamilyRecord], known: Known) -> list[Family]:
    """Return an entry per record: per root, host and device."""
    return [family_entry(record, known) for record in records]


def family_entry(record: FamilyRecord, known: Known) -> Family:
    """Return the entry of a record; without shapes where nothing could be timed."""
    members = member_entries(record.model, known.checkpoints, record.unraced)
    places = range(len(record.heats[0].shapes)) if record.heats else range(0)
    rounds = [FamilyRounds(record, place, known.accept_disturbed) for place in places]
    return {
        "root": record.model,
        "host": host_key(record.host),
        "device": record.device,
        "status": record.status,
        "reason": record.reason,
        "measured": record.measured,
        "members": members,
        "shapes": [AtShape.of(one, members, known).entry() for one in rounds],
    }


class AtShape(NamedTuple):
    """A family at one shape: its rounds, its members, and the rows of all their variants."""

    rounds: FamilyRounds
    members: list[FamilyMember]
    rows: Rows
    known: Known

    @classmethod
    def of(cls, rounds: FamilyRounds, members: list[FamilyMember], known: Known) -> "AtShape":
        """Return the family at the shape of the rounds."""
        record, shape = rounds.record, shape_of(rounds.heats[0].sizes)
        names = {one["model"] for one in members}
        results = [one for one in known.results if one["model"] in names]
        rows = rows_at(results, host_key(record.host), record.device, shape)
        return cls(rounds, members, rows, known)

    def entry(self) -> FamilyShape:
        """Return the entry of the shape."""
        record, known = self.rounds.record, self.known
        baseline = record.model, self.baseline(record.model)
        names = [one["model"] for one in self.members]
        given = self.rows, known.judged, baseline, known.budget
        points = family_points(self.rounds, names, *given)
        engines, disturbed = self.engines(points), self.rounds.disturbed()
        return {
            "shape": shape_of(self.rounds.heats[0].sizes),
            "fastest": fastest(engines),
            "rounds": self.rounds.rounds(),
            "stop": self.rounds.heats[-1].stop,
            "disturbed": disturbed,
            "provisional": bool(disturbed and known.accept_disturbed),
            "engines": engines,
            "points": points,
        }

    def engines(self, points: Sequence[FamilyPoint]) -> list[FamilyEngine]:
        """Return the recommended engine of each member, and the root's two others."""
        front = {(one["model"], one["variant"]) for one in points if one["front"]}
        found = [self.engine(one, self.named(one["model"]), "recommended") for one in self.members]
        for role in ("baseline", "quantized"):
            name = self.rounds.engine(role)
            if name and name != self.named(self.rounds.record.model):
                found.append(self.engine(self.members[0], name, role))
        return [{**one, "front": (one["model"], one["variant"]) in front} for one in found]

    def named(self, model: str | None) -> str | None:
        """Return the recommended engine of a model by its name, None without one."""
        return self.rounds.chosen.get(model or "")

    def engine(
        self,
        member: FamilyMember,
        name: str | None,
        role: Literal["recommended", "baseline", "quantized"],
    ) -> FamilyEngine:
        """Return the entry of an engine of a member, without its place on the front."""
        model, variant = member["model"], model_and_variant(name)[1] if name else None
        result = self.result(model, variant)
        row = self.rows.get((model, variant or ""))
        time = self.rounds.seconds(name) if name else None
        accuracy = result["accuracy"] if result else None
        against = self.against(member, name) if name else {}
        return {
            "model": model,
            "variant": variant,
            "role": role,
            "status": "ok" if time else "failed",
            "reason": None if time else self.lacks(member, name),
            "size_bytes": result["size_bytes"] if result else None,
            "energy_j": row["energy_j"] if row else None,
            "call_s": time.value if time else None,
            "low": time.low if time else None,
            "high": time.high if time else None,
            "top1": accuracy["top1"] if accuracy else None,
            "samples": accuracy["samples"] if accuracy else None,
            "front": False,
            "against": against,
            "verdict": member_verdict(model, against) if role == "recommended" else None,
        }

    def lacks(self, member: FamilyMember, name: str | None) -> str:
        """Return why an engine of a member has no time."""
        failed = [
            f"{model_and_variant(one)[1]}: {reason}"
            for one, reason in self.rounds.record.left_out.items()
            if model_and_variant(one)[0] == member["model"]
        ]
        if name is not None:
            return self.rounds.disturbed() or "it was not timed with the root's baseline"
        return member["reason"] or "; ".join(failed) or "no variant has a latency at this shape"

    def result(self, model: str, variant: str | None) -> Result | None:
        """Return the result of a variant of a model on the host of the rounds."""
        host = host_key(self.rounds.record.host)
        key = model, variant, host
        found = (one for one in self.known.results if one["model"] == model)
        return next((one for one in found if (model, one["variant"], one["host"]) == key), None)

    def baseline(self, model: str) -> str:
        """Return the baseline of a model where the family was timed."""
        names, record = self.known.baselines[model], self.rounds.record
        return at_place(names, record.device, host_key(record.host)) or names[record.device]

    def against(self, member: FamilyMember, name: str) -> dict[Against, Comparison]:
        """Return what an engine is compared with: those of the root, and of the parent."""
        root, parent = self.rounds.record.model, member["parent"]
        others: dict[Against, str | None] = {
            "root_baseline": engine_name(root, self.baseline(root)),
            "root_recommended": self.named(root),
            "root_quantized": self.rounds.engine("quantized"),
            "parent_baseline": engine_name(parent, self.baseline(parent)) if parent else None,
            "parent_recommended": self.named(parent),
        }
        return {
            role: self.comparison(name, other)
            for role, other in others.items()
            if other and other != name
        }

    def comparison(self, name: str, other: str) -> Comparison:
        """Return the comparison of two engines by their names."""
        judged = self.known.judged
        records = judged.get(model_and_variant(name)), judged.get(model_and_variant(other))
        model, variant = model_and_variant(other)
        return {
            "model": model,
            "variant": variant,
            "speedup": self.rounds.speedup(name, other),
            "accuracy": accuracy_against(*records, self.known.budget),
        }


def fastest(engines: Sequence[FamilyEngine]) -> FamilyChoice | None:
    """Return the fastest of these whose accuracy is kept against the root's baseline."""
    timed = [one for one in engines if one["call_s"] is not None and keeps_accuracy(one)]
    best = min(timed, key=lambda one: one["call_s"] or 0.0, default=None)
    if best is None or best["variant"] is None:
        return None
    return {"model": best["model"], "variant": best["variant"]}


def keeps_accuracy(engine: FamilyEngine) -> bool:
    """Return whether the accuracy is kept; without labels, and of the baseline itself, it is."""
    against = engine["against"].get("root_baseline")
    if against is None:
        return engine["variant"] is not None
    return against["accuracy"] is None or against["accuracy"]["verdict"] == "kept"

"""Which engines of a family run in the same rounds at a shape, and which of them are compared."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tightrope.measure.family.members import Member, Rating, parents
from tightrope.records.family import engine_name
from tightrope.records.finalists import Finalists


class Comparison(NamedTuple):
    """The engines at a shape by name: `chosen` by model, and the root's two others.

    `baseline` is the root's baseline, `quantized` its best quantized engine.
    """

    chosen: dict[str, str]
    baseline: str | None
    quantized: str | None
    root: str
    parents: Mapping[str, str]

    def recorded(self) -> dict[str, Any]:
        """Return the fields of a shape of the record."""
        return {"chosen": self.chosen, "baseline": self.baseline, "quantized": self.quantized}

    def references(self) -> list[str]:
        """Return the engines to which those of all models are compared."""
        found = (self.baseline, self.chosen.get(self.root), self.quantized)
        return list(dict.fromkeys(one for one in found if one))

    def engines(self) -> Finalists:
        """Return all engines, and the pairs whose ratio is a result."""
        references = self.references()
        names = list(dict.fromkeys([*references, *self.chosen.values()]))
        pairs = {}
        for model, name in self.chosen.items():
            parent = self.chosen.get(self.parents.get(model, ""))
            for other in [*references, *([parent] if parent else [])]:
                if other != name:
                    pairs[frozenset((name, other))] = (name, other)
        return Finalists(names, list(pairs.values()))


def comparison(members: Mapping[str, Member], root: str, rating: Rating, place: int) -> Comparison:
    """Return the engines at the shape with index `place`."""
    chosen = {
        name: engine_name(name, variant)
        for name, one in members.items()
        if (variant := one.chosen(rating, place))
    }
    baseline, quantized = None, None
    if first := members.get(root):
        baseline = rating.baseline if rating.baseline in first.measured else None
        quantized = first.quantized(rating, place)
    return Comparison(
        chosen,
        engine_name(root, baseline) if baseline else None,
        engine_name(root, quantized) if quantized else None,
        root,
        parents(members),
    )

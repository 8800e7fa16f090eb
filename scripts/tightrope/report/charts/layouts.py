"""Specifications that altair makes once, with slots for what differs from chart to chart.

Altair copies a whole chart at each of its steps, which of many charts takes most of the time.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class Slot:
    """A place in a specification, which altair takes as it is."""

    # what makes it a part of a specification to altair
    _schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def __init__(self, name: str) -> None:
        self.name = name

    def to_dict(self) -> "Slot":
        """Return the slot, to be filled later."""
        return self


def slot(name: str) -> Any:
    """Return a slot in the place of a value of any type."""
    return Slot(name)


def filled(layout: Any, values: Mapping[str, Any]) -> Any:
    """Return a copy of a specification with these values in its slots, which are not copied."""
    if isinstance(layout, Slot):
        return values[layout.name]
    if isinstance(layout, dict):
        return {key: filled(part, values) for key, part in layout.items()}
    if isinstance(layout, list):
        return [filled(part, values) for part in layout]
    return layout

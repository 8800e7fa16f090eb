"""Types of the entries of summary.json on searches for a smaller model."""

from typing import TypedDict

from tightrope.summary.result_types import Ratio


class Loss(TypedDict):
    """Change of accuracy on the calibration split against the parent's baseline, fractions."""

    delta: float
    low: float
    high: float


class SearchedModel(TypedDict):
    """A model of a search: the `factor` of the ladder, what is left, and what was measured.

    `blocks` are those of each stage, `neurons` those of each feed-forward layer, None where
    config.json has no size for them. `speedup` is over the parent's baseline. `reason` says why it
    could not be built or run.
    """

    factor: float
    blocks: list[int]
    neurons: int | None
    parameters: int | None
    accuracy: Loss | None
    speedup: Ratio | None
    seconds: float
    reason: str | None


class CompressionSearch(TypedDict):
    """The path of a search: its models in their order, which is `chosen`, and why it `ended`.

    `target` is the speed-up asked for over the parent's baseline, `reached` that of the chosen one.
    """

    model: str
    variant: str
    shape: dict[str, int]
    target: float
    budget_points: float
    ended: str
    chosen: float | None
    reached: float | None
    short_by: float | None
    models: list[SearchedModel]

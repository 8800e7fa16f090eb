"""Types of the JSON artifacts of INT8, which several packages read."""

from typing import Annotated, Literal, NotRequired, TypedDict

from msgspec import Meta

Size = Annotated[int, Meta(ge=1)]


class OperatorEffect(TypedDict):
    """Effect on the logits of an operator alone in int8."""

    agreement: float
    logit_error: float | None
    kl: float
    sqnr_db: float | None


class Sensitivities(TypedDict):
    """The effect of each operator on so many samples."""

    samples: int
    operators: dict[str, OperatorEffect]


class OperatorCost(TypedDict):
    """Seconds of an operator alone at one shape."""

    batch: Size
    sequence: NotRequired[Size]
    tokens: NotRequired[Size]
    height: NotRequired[Size]
    width: NotRequired[Size]
    float_s: float
    int8_s: float


class Costs(TypedDict):
    """What `int8.costs` writes: the times of each operator at each shape."""

    host: NotRequired[str | None]
    operators: dict[str, list[OperatorCost]]


class Trial(TypedDict):
    """A trial of a search: SmoothQuant, operators in float, the change of accuracy with them."""

    smoothquant: float | None
    in_float: list[str]
    delta: float
    delta_low: float
    delta_high: float
    flips: int
    verdict: Literal["kept", "dropped", "undecided"]
    seconds: float


class InFloat(TypedDict):
    """What a search found: the operators that stay in float, and the strength of SmoothQuant."""

    in_float: list[str]
    smoothquant: float | None


class Found(InFloat):
    """What `int8.search` writes, with how it was found."""

    operators: int
    sensitivity: Sensitivities | None
    samples: int
    budget_points: float
    seconds: float
    trials: list[Trial]


class Audited(TypedDict):
    """What is read of an audit besides its evidence."""

    status: Literal["ok", "collapsed", "failed"]
    reason: NotRequired[str | None]
    engine_sha256: NotRequired[str | None]

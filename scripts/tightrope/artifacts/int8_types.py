"""Types of the JSON artifacts of INT8, which several packages read."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

Size = Annotated[int, Meta(ge=1)]


class OperatorEffect(TypedDict):
    """Effect on the logits of an operator alone in int8."""

    agreement: float
    logit_error: float | None
    kl: float
    sqnr_db: float | None


class Divergence(TypedDict):
    """How much of the effect of an operator ranks it."""

    kl: float


class Divergences(TypedDict):
    """What a search reads of `Sensitivities`."""

    operators: dict[str, Divergence]


class Sensitivities(TypedDict):
    """What `int8.sensitivity` writes: the effect of each operator on so many samples."""

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
    """A trial of a search: the operators in float, and the change of accuracy with them."""

    in_float: list[str]
    delta: float
    delta_low: float
    delta_high: float
    flips: int
    verdict: Literal["kept", "dropped", "undecided"]
    seconds: float


class Trials(TypedDict):
    """The trials of an interrupted search with this key."""

    key: str
    trials: list[Trial]


class InFloat(TypedDict):
    """What a search found: the operators that stay in float, and the strength of SmoothQuant."""

    in_float: list[str]
    smoothquant: float | None


class Found(InFloat):
    """What `int8.search` writes, with how it was found."""

    stop: str
    samples: int
    budget_points: float
    seconds: float
    ranking: list[dict[str, Any]]
    trials: list[Trial]


class Audited(TypedDict):
    """What is read of an audit besides its evidence."""

    status: Literal["ok", "collapsed", "failed"]
    reason: NotRequired[str | None]
    engine_sha256: NotRequired[str | None]

"""Types of the graph record, which is shown without the ONNX file."""

from typing import Annotated, Literal, TypedDict

from msgspec import Meta

# format of operators that compute in no floating-point or quantized format, or an unknown one
OTHER = "other"
# layer of operators that several layers consume, such as the padding mask; it comes first
SHARED = ""
Count = Annotated[int, Meta(ge=0, le=2**62)]
Seconds = Annotated[float, Meta(ge=0)]


class Value(TypedDict):
    """An input or output; a size that is not known is None."""

    name: str
    type: str
    shape: list[str | Count | None]


class Operators(TypedDict):
    """Operators of a layer of one type and format."""

    type: str
    precision: str
    count: Count


class Layer(TypedDict):
    """A layer of one repetition of a block, with the names of all repetitions."""

    names: Annotated[list[str], Meta(min_length=1)]
    parameters: Count
    weight_bytes: Count
    seconds: Seconds | None
    operators: list[Operators]


class Block(TypedDict):
    """Layers that repeat together so many times."""

    times: Annotated[int, Meta(ge=1, le=2**31)]
    layers: Annotated[list[Layer], Meta(min_length=1)]


class Timed(TypedDict):
    """The shape at which the operators were timed, and on which host."""

    shape: dict[str, Count]
    host: str | None


class GraphRecord(TypedDict):
    """What `describe` returns."""

    status: Literal["ok"]
    operators: Count
    by_type: dict[str, Count]
    by_precision: dict[str, Count]
    parameters: Count
    weight_bytes: Count
    inputs: list[Value]
    outputs: list[Value]
    time: Timed | None
    blocks: list[Block]

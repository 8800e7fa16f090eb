"""Times of the layers of a TensorRT engine, with the work of their shapes. Not run on a GPU."""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from tightrope.records.profile import OperatorTime
from tightrope.runtimes.operator_times import ATTENTION, FUSED, PRODUCTS, Tensor, operator_time
from tightrope.runtimes.tensorrt.inspection import PRODUCTS as KINDS
from tightrope.runtimes.tensorrt.inspection import kind_of, layers_of, product_precision, type_of


def timed_layers(information: str, seen: Iterable[tuple[str, float]]) -> Iterator[OperatorTime]:
    """Yield a layer for each name and seconds that TensorRT's profiler told.

    `information` is the inspector's, as for `inspection.executed`; of a layer that it does not name
    nothing else is known.
    """
    known = {one["Name"]: one for one in layers_of(information)}
    for name, seconds in seen:
        layer = known.get(name)
        if layer is None:
            yield OperatorTime(name, FUSED, FUSED, "unknown", seconds, 0.0, 0.0)
            continue
        kind = kind_of(layer)
        group = ATTENTION if kind == "attention" else PRODUCTS if kind in KINDS else FUSED
        read, made = (tensors_of(layer.get(end, ())) for end in ("Inputs", "Outputs"))
        found = operator_time(name, kind, seconds, read, made if read else [], group=group)
        yield replace(found, type=product_precision(layer)) if kind in KINDS else found


def tensors_of(ends: Iterable[dict[str, Any]]) -> list[Tensor]:
    """Return the tensors of a layer; none where the sizes of one are not known."""
    found = [Tensor(tuple(one.get("Dimensions", ())), type_of(one)) for one in ends]
    return found if all(one.shape and min(one.shape) > 0 for one in found) else []

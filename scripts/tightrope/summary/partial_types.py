"""Types of summary.json in which no field is required, for summaries of earlier versions."""

from functools import cache
from types import UnionType
from typing import Any, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict


@cache
def partial_type(kind: Any) -> Any:
    """Return a type without a required field at any depth; what a field holds stays the same."""
    if is_typeddict(kind):
        fields = {name: partial_type(one) for name, one in get_type_hints(kind).items()}
        return TypedDict(kind.__name__, fields, total=False)  # type: ignore[operator]  # made here
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return Union[tuple(map(partial_type, arguments))]  # noqa: UP007 of as many as there are
    if origin in (list, dict):
        return origin[tuple(map(partial_type, arguments))]
    return kind

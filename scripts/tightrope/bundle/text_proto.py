"""Protocol buffer messages as text, the form of Triton's config.pbtxt."""

from collections.abc import Mapping, Sequence
from typing import Any


class Enum(str):
    """A name of an enumeration, which is written without quotes."""


Message = Mapping[str, Any]


def text_proto(message: Message, depth: int = 0) -> str:
    """Return the fields of `message` in their order, one per line.

    A value is a bool, an int, an `Enum`, a str, a message, or a sequence of these for a repeated
    field.
    """
    return "".join(
        field(name, value, "  " * depth, depth)
        for name, values in message.items()
        for value in (values if is_repeated(values) else [values])
    )


def parameters(values: Mapping[str, str]) -> list[Message]:
    """Return the entries of a map from strings to `ModelParameter`, as config.pbtxt has them."""
    return [{"key": key, "value": {"string_value": value}} for key, value in values.items()]


def is_repeated(value: Any) -> bool:
    """Return whether a value is the sequence of a repeated field."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def field(name: str, value: Any, margin: str, depth: int) -> str:
    """Return the lines of one field."""
    if isinstance(value, Mapping):
        return f"{margin}{name} {{\n{text_proto(value, depth + 1)}{margin}}}\n"
    return f"{margin}{name}: {scalar(value)}\n"


def scalar(value: bool | int | str) -> str:
    """Return a value that is no message."""
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else quoted(value)


def quoted(text: str) -> str:
    """Return a quoted string; quotes, backslashes and all bytes beyond ASCII are escaped."""
    return f'"{"".join(map(escaped, text.encode()))}"'


def escaped(byte: int) -> str:
    """Return a byte of a quoted string, as three octal digits where it is not printable."""
    if byte in b'"\\':
        return f"\\{chr(byte)}"
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"

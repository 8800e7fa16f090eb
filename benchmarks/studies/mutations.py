"""What may have happened to a file between two steps, as functions that change it in place."""

import json
import math
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DEEP = 100_000
Mutate = Callable[[Path, random.Random], None]
OTHER_TYPES: list[Any] = [None, [], {}, True, "x", "", -1, 10**30, [[]], {"a": [1]}]


def truncate(path: Path, draw: random.Random) -> None:
    """Cut the file somewhere."""
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content))] if content else b"")


def flip(path: Path, draw: random.Random) -> None:
    """Flip a bit."""
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def empty(path: Path, draw: random.Random) -> None:
    """Leave nothing in the file."""
    path.write_bytes(b"")


def deepen(path: Path, draw: random.Random) -> None:
    """Put lists in lists in its place, too deep for a parser that recurses."""
    path.write_bytes(b"[" * DEEP + b"]" * DEEP)


def fifo(path: Path, draw: random.Random) -> None:
    """Put a pipe that nobody writes to in its place."""
    path.unlink()
    os.mkfifo(path)


def folder(path: Path, draw: random.Random) -> None:
    """Put a folder in its place."""
    path.unlink()
    path.mkdir()


def link_to_device(path: Path, draw: random.Random) -> None:
    """Put a link to an endless device in its place."""
    path.unlink()
    path.symlink_to("/dev/zero")


def link_to_itself(path: Path, draw: random.Random) -> None:
    """Put a link that leads nowhere in its place."""
    path.unlink()
    path.symlink_to(path.name)


def missing(path: Path, draw: random.Random) -> None:
    """Delete the file."""
    path.unlink()


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the owner and key of each value in a document."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, key
            yield from places(inner)


def is_number(value: Any) -> bool:
    """Return whether a value is a number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def edit(path: Path, change: Callable[[Any], None]) -> None:
    """Change a JSON document in its file, written as a job writes it."""
    document = json.loads(path.read_text())
    change(document)
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n")


def change_number(path: Path, draw: random.Random) -> None:
    """Change one number by a thousandth, or by one."""

    def change(document: Any) -> None:
        numbers = [one for one in places(document) if is_number(one[0][one[1]])]
        owner, key = draw.choice(numbers)
        owner[key] = owner[key] + 1 if isinstance(owner[key], int) else owner[key] * 1.001 + 1e-9

    edit(path, change)


def other_type(path: Path, draw: random.Random) -> None:
    """Replace one value by one of another type."""

    def change(document: Any) -> None:
        owner, key = draw.choice(list(places(document)))
        owner[key] = draw.choice([one for one in OTHER_TYPES if one != owner[key]])

    edit(path, change)


def remove_key(path: Path, draw: random.Random) -> None:
    """Leave out one key or entry."""

    def change(document: Any) -> None:
        owner, key = draw.choice(list(places(document)))
        del owner[key]

    edit(path, change)


def not_a_number(path: Path, draw: random.Random) -> None:
    """Replace one value by NaN."""

    def change(document: Any) -> None:
        owner, key = draw.choice(list(places(document)))
        owner[key] = math.nan

    edit(path, change)


BYTES: dict[str, Mutate] = {
    **{"truncated": truncate, "bit flipped": flip, "emptied": empty, "deep lists": deepen},
    **{"pipe": fifo, "folder": folder, "link to /dev/zero": link_to_device},
    **{"link to itself": link_to_itself, "deleted": missing},
}
DOCUMENTS: dict[str, Mutate] = {
    **{"number changed": change_number, "other type": other_type, "key removed": remove_key},
    "NaN": not_a_number,
}

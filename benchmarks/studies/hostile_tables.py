"""Tables of another's making."""

import gzip
import json
import os
import struct
from collections.abc import Callable
from typing import Any

from hostile_cases import DATA, Case, Sandbox

ROWS = [
    f"text {word} {number}," + ("cat", "dog")[number % 2]
    for number, word in enumerate("abcdefghijklmnopqrstuvwxyz")
]


def table(
    name: str,
    file: str,
    make: Callable[[Sandbox], bytes | None],
    *named: str,
    harmless: bool = False,
) -> Case:
    """Return a case of a table of texts; `make` writes it itself where it returns None."""

    def write(sandbox: Sandbox) -> dict[str, Any]:
        content = make(sandbox)
        if content is not None:
            (sandbox / file).write_bytes(content)
        return {"data": f"files:{file}", "splits": {"train": 4, "evaluation": 4}}

    return Case(name, write, named or (file,), DATA, harmless)


def rows(*more: str, header: str = "text,label") -> bytes:
    """Return a CSV file with good rows and these."""
    return "\n".join([header, *ROWS, *more, ""]).encode(errors="surrogateescape")


def link(file: str, target: str) -> Callable[[Sandbox], None]:
    """Return what makes a pipe or a link."""

    def make(sandbox: Sandbox) -> None:
        place = sandbox / file
        os.mkfifo(place) if target == "pipe" else place.symlink_to(target)

    return make


def lines(*more: str) -> bytes:
    """Return a file of JSON lines with good rows and these."""
    good = [json.dumps(dict(zip(("text", "label"), row.split(","), strict=True))) for row in ROWS]
    return "\n".join([*good, *more, ""]).encode(errors="surrogateescape")


TABLES = [
    table("a pipe", "a.csv", link("a.csv", "pipe")),
    table("/dev/zero", "a.csv", link("a.csv", "/dev/zero")),
    table("a link to itself", "a.csv", link("a.csv", "a.csv")),
    table("a bomb of gzip", "a.csv.gz", lambda _: gzip.compress(rows() + b"x" * 2**31, 9)),
    table("half of gzip", "a.csv.gz", lambda _: gzip.compress(rows())[:-20]),
    table("a text with NUL", "a.csv", lambda _: rows("a\0b,cat")),
    table("a label that controls a terminal", "a.csv", lambda _: rows("a b,\x1b[2J")),
    table("labels that differ in space", "a.csv", lambda _: rows("a b, cat ")),
    table(
        "a label of HTML", "a.csv", lambda _: rows("a b,<script>alert(1)</script>"), harmless=True
    ),
    table(
        "a label that is a formula",
        "a.csv",
        lambda _: rows("a b,=cmd|' /C calc'!A0"),
        harmless=True,
    ),
    table("a label of 10^6 letters", "a.csv", lambda _: rows(f"a b,{'x' * 10**6}"), harmless=True),
    table("a column twice", "a.csv", lambda _: rows(header="text,label,label")),
    table("10^6 columns", "a.csv", lambda _: b",".join([b"a"] * 10**6) + b"\n"),
    table("not UTF-8", "a.csv", lambda _: rows("caf\udce9,cat")),
    table("a quote without an end", "a.csv", lambda _: rows('"a,cat')),
    table("JSON of deep lists", "a.jsonl", lambda _: lines("[" * 100_000)),
    table("JSON with NaN", "a.jsonl", lambda _: lines('{"text": NaN, "label": "cat"}')),
    table(
        "half a surrogate pair", "a.jsonl", lambda _: lines('{"text": "\\ud800", "label": "cat"}')
    ),
    table(
        "a number of 10^6 digits",
        "a.jsonl",
        lambda _: lines('{"text": "a", "label": ' + "9" * 10**6 + "}"),
    ),
    table(
        "a damaged Parquet file", "a.parquet", lambda _: b"PAR1" + bytes(range(256)) * 9 + b"PAR1"
    ),
    table(
        "a Parquet file with a footer of 2^31",
        "a.parquet",
        lambda _: b"PAR1" + struct.pack("<I", 2**31 - 1) + b"PAR1",
    ),
]

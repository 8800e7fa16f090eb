"""Patterns of the names that a wildcard may take."""

import re

import pytest
from tightrope.engine_table import ENGINES
from tightrope.plan.wildcards import one_of

VARIANTS = [f"cpu-{engine}-int8-minmax-{n}" for engine in ENGINES for n in (8, 64, 640, 1024)]


@pytest.mark.parametrize(
    "names",
    [
        ["a", "ab", "abc", "abd", "b.c", "b-c"],
        ["one"],
        ["model0", "model1", "model10", "model"],
        VARIANTS,
    ],
)
def test_a_pattern_matches_its_names_and_nothing_else(names: list[str]) -> None:
    found = re.compile(one_of(names))
    assert all(found.fullmatch(name) for name in names)
    others = {name[:-1] for name in names} | {f"{name}1" for name in names} | {"b_c", ""}
    assert not [name for name in others - {*names} if found.fullmatch(name)]
    assert one_of(reversed(names)) == one_of(names)


def test_a_pattern_takes_the_longest_name_that_it_can() -> None:
    found = re.match(one_of(["int8", "int8-auto", "int8-bf16"]), "int8-auto-minmax-8")
    assert found is not None
    assert found.group() == "int8-auto"


def test_a_pattern_has_what_its_names_begin_with_once() -> None:
    names = [f"cpu-int8-{count}-r{number}" for count in (16, 32) for number in "01"]
    assert one_of(names) == r"cpu\-int8\-(?:16\-r(?:0|1)|32\-r(?:0|1))"
    assert one_of([]) == ""

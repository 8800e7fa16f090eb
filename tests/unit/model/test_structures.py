"""The choice of a structure within a cost, against all structures that there are."""

import random
from itertools import product

import pytest
import torch
from pruned_models import model_of
from tightrope.model.importance import parameter_table
from tightrope.model.pruning import parameters, prune, stages_of, width_of
from tightrope.model.structures import (
    Costs,
    Importance,
    Judged,
    Structure,
    Table,
    choose,
    kept_parts,
)


def random_judged(seed: int, sizes: list[int], neurons: int) -> Judged:
    draw = random.Random(seed)
    stages = [
        [Importance([draw.random() for _ in range(neurons)], draw.random() * 2) for _ in range(n)]
        for n in sizes
    ]
    return Judged(stages, {1: 3.0, 2: 1.0, 4: 0.0} if neurons else {})


def random_table(seed: int, sizes: list[int], widths: list[int | None]) -> Table:
    draw = random.Random(seed)
    return {
        (width, None): Costs(
            draw.random(),
            [
                [(depth + 1) * cost * (width or 1) for depth in range(n)]
                for n, cost in zip(sizes, [draw.uniform(0.5, 2) for _ in sizes], strict=True)
            ],
        )
        for width in widths
    }


def require_best(judged: Judged, table: Table, limit: float, sizes: list[int]) -> None:
    """The chosen structure keeps the most of all within the limit."""
    structure, cost = choose(judged, table, limit)
    costs = table[structure.width, structure.heads]
    assert cost == pytest.approx(costs.of(structure.depths)) and cost <= limit
    within = [
        Structure(depths, *kept)
        for kept, costs in table.items()
        for depths in product(*(range(1, size + 1) for size in sizes))
        if costs.of(depths) <= limit
    ]
    assert structure in within
    assert judged.kept(structure) == pytest.approx(max(map(judged.kept, within)))


@pytest.mark.parametrize("seed", range(4))
def test_no_other_structure_within_the_limit_keeps_more(seed: int) -> None:
    sizes, widths = [2, 3, 4], [None] if seed % 2 else [1, 2, 4]
    table = random_table(seed, sizes, widths)
    limit = table[widths[-1], None].of(sizes) * 0.6
    require_best(random_judged(seed, sizes, 0 if seed % 2 else 4), table, limit, sizes)


def test_a_limit_that_nothing_meets_gets_the_smallest_structure() -> None:
    judged, table = random_judged(0, [3], 4), random_table(0, [3], [1, 2, 4])
    sizes = product(table.items(), (1, 2, 3))
    cheapest = min((costs.of([depth]), width, depth) for ((width, _), costs), depth in sizes)
    structure, cost = choose(judged, table, 0.0)
    assert (cost, structure) == (cheapest[0], Structure((cheapest[2],), cheapest[1]))


@pytest.mark.parametrize("kind", ["wide_bert", "distilbert"])
def test_the_table_of_parameters_counts_as_a_pruned_model_does(kind: str) -> None:
    model = model_of(kind)
    table, width = parameter_table(model), 64 if kind == "wide_bert" else 32
    assert list(table)[:2] == [(width, 1), (width, 2)]
    prune(model, layers=3)
    assert table[width_of(model), 2].of([3]) == parameters(model)
    prune(model, layers=2, intermediate=width)
    assert table[width, 2].of([2]) == parameters(model)
    prune(model, heads=1)
    assert table[width, 1].of([2]) == parameters(model)


def test_the_most_important_layers_neurons_and_heads_are_kept() -> None:
    three = [Importance([5, 1, 2], 1), Importance([1, 1, 1], 0), Importance([0, 3, 4], 2)]
    kept = {"layers": [0, 2], "intermediate": 2, "neurons": [[0, 2], [1, 2]]}
    assert kept_parts(Judged([three], {1: 4.0, 3: 0.0}), Structure((2,), 2)) == kept
    layers = [Importance([5, 1], 1, [1.0, 2.0]), Importance([1, 3], 2, [4.0, 0.0])]
    judged = Judged([layers], {1: 4.0, 2: 0.0}, {1: 3.0, 2: 0.0})
    assert judged.values(2, 2) == [[1.0, 2.0]]
    # a loss of 3 for heads of 1 and 0
    assert judged.values(2, 1) == [[-2.0, 2.0]]
    kept = {"layers": [0, 1], "intermediate": 1, "neurons": [[0], [1]]}
    kept |= {"heads": 1, "kept_heads": [[1], [0]]}
    assert kept_parts(judged, Structure((2,), 1, 1)) == kept


def test_parameters_of_a_convnext_are_counted_by_stage() -> None:
    model = model_of("convnext")
    table = parameter_table(model)
    assert list(table) == [(16, None), (32, None)]
    prune(model, blocks=[[0], [0], [1, 2], [0]])
    assert table[32, None].of([1, 1, 2, 1]) == parameters(model)
    prune(model, intermediate=16)
    assert table[16, None].of([1, 1, 2, 1]) == parameters(model)
    # a model that is narrow already is narrowed in proportion to what it has
    narrower = parameter_table(model)
    assert list(narrower) == [(16, None)]
    assert narrower[16, None].of([1, 1, 2, 1]) == parameters(model)


def test_of_unlike_blocks_all_together_have_the_parameters_of_the_model() -> None:
    model = model_of("convnext")
    stages = stages_of(model)
    stages[2][1].more = torch.nn.Linear(4, 4)
    whole = [len(blocks) for blocks in stages]
    assert parameter_table(model)[32, None].of(whole) == parameters(model)


def test_neurons_of_stages_are_kept_in_proportion() -> None:
    stages = [[Importance([1.0, 2.0], 1.0)], [Importance([4.0, 1.0, 3.0, 2.0], 1.0)]]
    judged = Judged(stages, {1: 0.5, 2: 0.0})
    kept = {"blocks": [[0], [0]], "intermediate": 1, "neurons": [[1], [0, 2]]}
    assert kept_parts(judged, Structure((1, 1), 1)) == kept
    assert judged.values(1) == [[1.0 - 0.5 * 1 / 4], [1.0 - 0.5 * 3 / 4]]

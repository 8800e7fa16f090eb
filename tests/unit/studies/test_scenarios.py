"""Traffic: padding and batches, answers of the server, rounds, rates and samples."""

import sys
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from mlperf_loadgen import QuerySample
from played_engines import nowhere
from tightrope.errors import WorkFailed
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.texts import text_arrays
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.measure.accuracy import answers
from tightrope.studies import scenarios
from tightrope.studies.loadgen import Serving, bucket_edges, padded_lengths
from tightrope.studies.traffic import Rehearsal, Sent, Settings

CLASSES = 3
LENGTHS = [5, 2, 9, 9, 1, 7, 3, 4, 8, 6, 2]
BUCKETS = [5, 5, 9, 9, 5, 9, 5, 5, 9, 9, 5]
WEIGHTS = np.random.default_rng(1).normal(size=(100, CLASSES))


def rows() -> list[Arrays]:
    draw = np.random.default_rng(0)
    return [text_arrays(draw.integers(100, size=length)) for length in LENGTHS]


def run(inputs: Arrays) -> np.ndarray:
    """A bag of words, which padding does not change."""
    return (WEIGHTS[inputs["input_ids"]] * inputs["attention_mask"][..., None]).sum(axis=1)


def served(padded: list[int | None], batch: int, engine: Callable[..., Any] = run) -> Serving:
    def answer(inputs: Arrays) -> list[tuple[int, float]]:
        return answers(engine(inputs), inputs, classes=CLASSES)

    return Serving(answer, rows(), padded, batch=batch)


def ask(serving: Serving, indices: list[int]) -> list[int]:
    """Ask for these samples, ids counted from 1000; the ids that were completed."""
    serving.inbox.put([QuerySample(1000 + place, index) for place, index in enumerate(indices)])
    serving.inbox.put(None)
    completed: list[int] = []
    serving.work(completed.extend)
    return completed


@pytest.mark.parametrize("padded", [[None] * 11, [16] * 11, BUCKETS])
@pytest.mark.parametrize("batch", [1, 4, 100])
def test_answers_are_those_of_the_engine_alone(padded: list[int | None], batch: int) -> None:
    serving = served(padded, batch)
    completed = ask(serving, list(range(11)))
    logits = np.concatenate([run(stack([row])) for row in rows()])
    highest = np.sort(logits, axis=1)
    assert serving.predictions == logits.argmax(axis=1).tolist()
    assert serving.margins == pytest.approx((highest[:, -1] - highest[:, -2]).tolist())
    assert sorted(completed) == list(range(1000, 1011))
    # samples that were not asked for have no prediction, others one each time
    serving = served(padded, batch)
    assert sorted(ask(serving, [2, 5, 5])) == [1000, 1001, 1002]
    known = [index for index, prediction in enumerate(serving.predictions) if prediction != -1]
    assert known == [index for index, margin in enumerate(serving.margins) if margin > 0] == [2, 5]


@pytest.mark.parametrize(
    ("padded", "padding", "shapes"),
    [
        ([16] * 11, 11 * 16, [(4, 16), (4, 16), (3, 16)]),
        # exactly the length of their bucket
        (BUCKETS, sum(BUCKETS), [(4, 5), (4, 9), (2, 5), (1, 9)]),
        # batches of 5 2 9 9, 1 7 3 4 and 8 6 2
        ([None] * 11, 4 * 9 + 4 * 7 + 3 * 8, [(4, 9), (4, 7), (3, 8)]),
    ],
)
def test_tokens_of_samples_and_of_padding_are_counted_apart(padded, padding, shapes) -> None:
    seen = []

    def engine(inputs: Arrays) -> np.ndarray:
        seen.append(inputs["input_ids"].shape)
        return run(inputs)

    serving = served(padded, 4, engine)
    ask(serving, list(range(11)))
    assert seen == shapes
    assert (serving.tokens, serving.batches) == (sum(LENGTHS), len(shapes))
    assert serving.padded_tokens == padding - sum(LENGTHS)


@pytest.mark.parametrize(("batch", "waiting", "sizes"), [(8, [0], [1, 3]), (2, [0, 1, 2], [2, 2])])
def test_what_comes_while_the_engine_is_busy_fills_the_next_batch(batch, waiting, sizes) -> None:
    found: list[int] = []

    def engine(inputs: Arrays) -> np.ndarray:
        if not found:
            for index in range(len(waiting), 4):
                serving.inbox.put([QuerySample(index, index)])
            serving.inbox.put(None)
        found.append(len(inputs["input_ids"]))
        return run(inputs)

    serving = served([None] * 11, batch, engine)
    serving.inbox.put([QuerySample(index, index) for index in waiting])
    completed: list[int] = []
    serving.work(completed.extend)
    assert (completed, found) == ([0, 1, 2, 3], sizes)


@pytest.mark.parametrize("error", [ValueError("broken"), SystemExit(3), WorkFailed("out", True)])
@pytest.mark.parametrize("good", [0, 2])
def test_after_an_error_every_query_is_completed_once_and_the_error_raised_at_the_end(error, good):
    calls = iter(range(good + 1))

    def engine(inputs: Arrays) -> np.ndarray:
        if next(calls) == good:  # it is not called again
            raise error
        return run(inputs)

    serving = served([None] * 11, 4, engine)
    serving.inbox.put([QuerySample(index, index) for index in range(11)])
    serving.inbox.put([QuerySample(11, 0)])
    serving.inbox.put(None)
    completed: list[int] = []
    with pytest.raises(type(error)) as caught:
        serving.work(completed.extend)
    assert caught.value is error
    assert (completed, serving.batches) == (list(range(12)), good)


def padded_tokens(lengths: list[int], edges: list[int] | tuple[int, ...]) -> int:
    """Tokens after padding, counted sample by sample."""
    return sum(min(edge for edge in edges if edge >= length) for length in lengths)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_no_other_edges_give_less_padding(count: int) -> None:
    for seed in range(24):
        draw = np.random.default_rng(seed)
        lengths = draw.integers(1, 3 + 2 * (seed % 8), size=1 + 2 * seed).tolist()
        edges, distinct = bucket_edges(lengths, count), sorted(set(lengths))
        others = combinations(distinct[:-1], min(count, len(distinct)) - 1)
        fewest = min(padded_tokens(lengths, (*inner, distinct[-1])) for inner in others)
        assert padded_tokens(lengths, edges) == fewest
        assert edges == sorted(set(edges)) and edges[-1] == max(lengths)
        assert len(edges) == min(count, len(distinct))


def test_each_padding_gives_its_own_lengths() -> None:
    lengths, each = [3, 9, 8, 20], {"max_sequence": 32, "edges": [8, 20]}
    assert padded_lengths("fixed", lengths, **each) == [32] * 4
    assert padded_lengths("longest", lengths, **each) == [None] * 4
    assert padded_lengths("none", lengths, **each) == [None] * 4
    assert padded_lengths("bucketed", lengths, **each) == [8, 20, 8, 20]


class Played:
    """A bench and a worker of no processor, which no other program can use."""

    processors: list[int] = []
    machine: Any

    def __init__(self, quiet_seconds: float, answer: Callable[[str, str], Any]) -> None:
        self.machine = nowhere(quiet_seconds, sys.__stderr__)
        self.answer = answer

    def ask(self, request: str, name: str, padding: str, *_: Any) -> Any:
        """The facts of a test that took a second."""
        return {"duration_s": 1.0, "valid": True, **self.answer(name, padding)}

    def quietly(self, once: Callable[[], Any]) -> Any:
        yield once()


def played(answer: Callable[[str, str], Any], quiet_seconds: float = 0.0, **more: Any) -> Any:
    """Scenarios of two paddings, whose tests have these answers."""
    bench: Any = Played(quiet_seconds, answer)
    settings = Settings(**{"seconds": 3.0, "batch": 4, **more})
    told = {"short_s": 0.01, "long_s": 0.02, "samples_per_s": 100.0}
    both = [Rehearsal(padding=one, **told) for one in ("fixed", "longest")]
    return scenarios.Scenarios(bench, bench, settings, Sent(samples=50, of=50), both)


LOUD, WILD = 0.9, (1.5, 0.5) * 99
NEARLY = (0.95, 1.05, *[1.0] * 99)


@pytest.mark.parametrize(
    ("gains", "foreign", "quiet_seconds", "expected", "lost"),
    [
        # three rounds are enough where the gain is known
        ((1.0,) * 99, [], 0.0, [3], 0),
        # they go on until it is: the ratio of the first rounds is far off
        (NEARLY, [], 0.0, [4, 5, 6], 0),
        # until twice the 3 s per padding, whose tests take a second each
        (WILD, [], 0.0, [6], 0),
        # a disturbed round is followed by another and its time given back, while time may be lost
        ((1.0,) * 99, [LOUD] * 4, 60.0, [7], 4),
        (WILD, [LOUD] * 2, 60.0, [7], 2),
        ((1.0,) * 99, [LOUD] * 99, 0.0, [3], 3),
        ((1.0,) * 99, [LOUD] * 99, 5.5, [6], 6),
    ],
)
def test_rounds_go_on_until_the_gain_is_known(gains, foreign, quiet_seconds, expected, lost):
    def answer(name: str, padding: str) -> dict[str, Any]:
        number, fixed = int(name.removeprefix("offline-")), padding == "fixed"
        cores = foreign[number - 1] if fixed and number <= len(foreign) else MAX_FOREIGN_CORES
        rate = 100.0 if fixed else 150.0 * gains[number - 1]
        return {"samples": 1, "batches": 1, "samples_per_s": rate, "foreign_cores": cores}

    run = played(answer, quiet_seconds, scenarios=["offline"])
    tests = [*run.run()]
    assert len(tests) / 2 in expected
    # another padding first each time
    assert [one.padding for one in tests[:4]] == ["fixed", "longest", "longest", "fixed"]
    assert run.bench.machine.lost_s == pytest.approx(lost, abs=0.5)


def test_the_searches_of_a_rate_alternate_and_none_begins_above_the_bound() -> None:
    def answer(name: str, padding: str) -> dict[str, Any]:
        rate = float(name.removeprefix("server-"))
        facts = {"issued_per_s": rate, "p99_s": 0.1, "queries": 662, "late": 0}
        return {**facts, "target_per_s": rate, "valid": rate <= 200, "foreign_cores": 0.0}

    tests = [*played(answer, scenarios=["server"], p99_bound_s=0.05).run()]
    assert [one.padding for one in tests[:4]] == ["fixed", "longest", "fixed", "longest"]
    assert [one.target_per_s for one in tests[::2]] == [100, 150, 225, 184, 203, 193, 198]
    assert [*played(answer, scenarios=["server"], p99_bound_s=0.01).run()] == []


def test_some_samples_have_lengths_in_proportion() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, size=1000).tolist()
    sent = Sent(samples=1000, of=1000, lengths=lengths)
    some = scenarios.in_proportion(sent, 200)
    assert len(some) == 200 and some == sorted(set(some))
    mean = np.mean([lengths[index] for index in some])
    assert mean == pytest.approx(np.mean(lengths), rel=0.02)
    images = Sent(samples=1000, of=1000)
    assert scenarios.in_proportion(images, 10**6) == list(range(1000))


def searched(passes: Callable[[float], bool], start: float, least: float = 0.0) -> Any:
    """The highest rate that passed in a whole search, None without one, and all rates."""
    tried: list[tuple[float, bool]] = []
    while (rate := scenarios.next_rate(tried, start, least)) is not None:
        tried.append((rate, passes(rate)))
    passed = [rate for rate, good in tried if good]
    return max(passed, default=None), [rate for rate, _ in tried]


def test_the_threshold_is_found_within_5_percent_by_rates_of_three_digits() -> None:
    for start in (0.013, 1.0, 100.0, 4321.0):
        for factor in np.geomspace(1 / 7.9, 4, 25):
            threshold = float(factor * start)
            found, asked = searched(threshold.__ge__, start)
            assert found in asked and len(asked) <= scenarios.RATES
            assert found <= threshold < 1.05 * found
    # it stops as soon as it is within 5 percent
    assert searched((100.0).__ge__, 100) == (100, [100, 150, 122, 110, 105])
    # where nothing passes there is no rate, and none below the least is tried but the first
    assert searched((0.0).__ge__, 512) == (None, [512 / 2**half for half in range(scenarios.RATES)])
    assert searched((0.0).__ge__, 512, 60) == (None, [512, 256, 128, 64])
    assert searched((0.0).__ge__, 512, 1000) == (None, [512])
    found, asked = searched((1e9).__ge__, 100)
    assert found == max(asked) > 2000
    _, asked = searched((700.0).__ge__, 1234.5678)
    assert asked == [1230, *(float(f"{rate:.3g}") for rate in asked[1:])]

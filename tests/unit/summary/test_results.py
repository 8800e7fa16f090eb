import math
from typing import Any

import pytest
from disturbed import QUIET, facts
from gpu_states import state
from latency_records import latency_record, latency_shape
from msgspec.structs import replace
from tightrope.decide.result import NO_SPEEDUP, LatencyRow, Shape, interval_of
from tightrope.records.latency import LatencyRecord, TimedShape, drift_std
from tightrope.statistics import speedup
from tightrope.summary.results import latency_entry

PLAN = {"pairs": 16, "calls": None, "loads": 2}
TIMES = ("p50_s", "mean_s", "throughput_per_s")


def shape(**changes: Any) -> TimedShape:
    blocks = [[0.010, 0.011, 0.012, 0.010], [0.010, 0.010, 0.011, 0.012]] * 8
    slower = [[2.0 * sample for sample in block] for block in blocks]
    return latency_shape(blocks, slower, **{"batch": 4, "foreign_cores": [0.0], **changes})


def latency(**changes: Any) -> LatencyRecord:
    return latency_record("cpu-onnxruntime-fp32", **{"plan": PLAN, **changes})


def row(one: TimedShape, *, accept: bool = False, **changes: Any) -> LatencyRow:
    """The entry of one shape."""
    return latency_entry(latency(shapes=[one], **changes), 0, accept_disturbed=accept)


def test_latency_statistics_are_those_of_all_samples() -> None:
    reference = {"before": {"rounds_s": [0.01] * 5}, "after": {"rounds_s": [0.02] * 5}}
    changed = row(shape(), reference=reference)
    assert changed.noise == ["the machine was 100 % slower after the measurement than before"]
    found = row(shape())
    samples = sorted(sample for block in shape().blocks_s for sample in block)
    assert found.samples == len(samples) == 64
    assert found.p50_s == samples[31]
    assert found.p90_s == samples[57]
    assert found.p99_s is None
    assert found.mean_s == pytest.approx(math.fsum(samples) / 64)
    assert found.throughput_per_s == pytest.approx(4 / found.mean_s)
    assert found.noisy is False


def test_a_speedup_is_baseline_time_over_own_time() -> None:
    one = shape()
    found = row(one).speedup
    assert found.ratio == pytest.approx(2.0)
    assert found.verdict == "faster"
    for loads in (1, 2):
        found = row(one, plan={"pairs": 16, "calls": None, "loads": loads}).speedup
        options = {"loads": loads, "unsteady": drift_std(0.0, loads)}
        expected = speedup(one.blocks_s, one.baseline_blocks_s, **options)
        assert (found.ratio, found.low, found.high) == expected
    swapped = shape(blocks_s=one.baseline_blocks_s, baseline_blocks_s=one.blocks_s)
    assert row(swapped).speedup.verdict == "slower"
    equal = shape(baseline_blocks_s=one.blocks_s)
    assert row(equal).speedup.verdict == "tie"
    assert row(shape(baseline_blocks_s=None)).speedup is None


def disturbed_shape(disturbed: int, quiet: int, **changes: Any) -> TimedShape:
    """Disturbed pairs first, in which every call took nine seconds."""
    one, extra = shape(), [[9.0] * 4] * disturbed
    return shape(
        blocks_s=extra + one.blocks_s[:quiet],
        baseline_blocks_s=extra + one.baseline_blocks_s[:quiet],
        **{**facts(disturbed, quiet), **changes},
    )


def test_disturbed_pairs_are_left_out_of_every_figure() -> None:
    found, clean = row(disturbed_shape(3, 16)), row(shape())
    assert (found.disturbed_pairs, found.noisy) == (3, True)
    assert found.noise == ["other programs or the hypervisor used 1.0 cores of its processors"]
    assert (clean.disturbed_pairs, clean.noisy, clean.noise) == (0, False, [])
    assert replace(found, disturbed_pairs=0, noisy=False, noise=[]) == clean
    assert (found.pairs, found.disturbed, found.provisional) == (16, None, False)


@pytest.mark.parametrize("calls", [None, 64])
@pytest.mark.parametrize(("disturbed", "enough"), [(7, True), (8, False)])
def test_without_more_than_half_of_the_pairs_there_is_no_number(disturbed, enough, calls):
    plan = {"pairs": 16, "calls": calls, "loads": 2}
    found = row(disturbed_shape(disturbed, 16 - disturbed), plan=plan)
    assert (found.pairs, found.disturbed_pairs) == (16 - disturbed, disturbed)
    numbers = [getattr(found, name) for name in (*TIMES, "samples")] + [found.speedup.ratio]
    assert all(numbers) if enough else not any(numbers)
    assert (found.disturbed is None) == enough
    accepted = row(disturbed_shape(disturbed, 16 - disturbed), plan=plan, accept=True)
    assert (accepted == found) == enough
    assert (found.speedup.verdict == "disturbed") == (not enough)
    # of more pairs than were asked for, half of those asked for and one
    found = row(disturbed_shape(11, 5), plan={"pairs": 8, "calls": None, "loads": 2})
    assert (found.pairs, found.disturbed) == (5, None)


def test_a_disturbed_row_has_no_number_but_the_reason_unless_it_is_accepted() -> None:
    one = disturbed_shape(12, 4, device_s=[0.004] * 19)
    alone = row(replace(one, baseline_blocks_s=None))
    assert (alone.speedup, alone.p50_s) == (None, None)
    assert alone.disturbed.startswith("only 4 of 16")
    found = row(one, busiest={"python3 train.py": 0.97})
    assert found.speedup == NO_SPEEDUP
    assert {getattr(found, name) for name in (*TIMES, "device_p50_s")} == {None}
    assert found.disturbed == (
        "only 4 of 16 pairs of blocks were undisturbed, 9 are needed: their threads waited for a "
        "CPU that another program used; the busiest: python3 train.py (97 % of a core)"
    )
    assert (found.samples, found.provisional) == (0, False)
    # accepted, all count
    found = row(one, accept=True)
    assert (found.pairs, found.samples, found.disturbed_pairs) == (16, 64, 12)
    assert found.provisional and found.disturbed.startswith("only 4 of 16")
    expected = speedup(one.blocks_s, one.baseline_blocks_s)
    assert interval_of(found.speedup) == expected


def test_a_row_has_its_sizes_the_time_of_its_gpu_and_streams_where_it_has_times() -> None:
    image = shape(height=32, width=48, sequence=None, device_s=[0.004] * 19 + [0.1])
    found = row(image)
    assert found.shape == Shape(batch=4, height=32, width=48)
    assert (found.device_p50_s, row(shape()).device_p50_s) == (0.004, None)
    blocks = {"calls": [100] * 5, "seconds": [0.2] * 5, "gpu": [None] * 5}
    streams = {"streams": [{"streams": 2, **blocks}]}
    found = row(shape(**streams)).streams
    assert (found.best, found.rates[0].throughput_per_s) == (2, pytest.approx(2000))
    assert row(shape()).streams is None
    assert row(disturbed_shape(12, 4, **streams)).streams is None


def long_block(joules: float | None = 300.0, calls: int = 100, **changes: Any) -> dict[str, Any]:
    return {"energy_j": joules, "calls": calls, "gpu": state(**changes)}


def test_energy_is_per_call_over_the_undisturbed_pairs_alone() -> None:
    one = disturbed_shape(3, 16, energy_j=[1000.0] * 3 + [2.0] * 16)
    assert row(one).energy_j == pytest.approx(2.0 / 4)
    assert row(shape()).energy_j is None
    # for blocks that are too short there are long ones, of which those of a free GPU count
    for blocks, joules in (
        ([long_block(), long_block(340.0, 60), long_block(None, 1000)], 640 / 160),
        ([long_block(), long_block(900.0, throttled=["thermal slowdown"])], 3.0),
        ([long_block(), long_block(900.0, computing_processes=1)], 3.0),
        ([long_block(throttled=["power cap"]), {**long_block(100.0), "gpu": None}], 2.0),
    ):
        assert row(shape(long_blocks=blocks)).energy_j == pytest.approx(joules)
    one = disturbed_shape(12, 4, energy_j=[4.0] * 16)
    assert row(one).energy_j is None
    assert row(one, accept=True).energy_j == pytest.approx(1.0)


def test_a_row_on_a_gpu_has_its_state_also_where_it_is_disturbed() -> None:
    hot = replace(QUIET, throttled=["thermal slowdown"], computing_processes=0)
    states = [state(throttled=["thermal slowdown"])] * 16
    found = row(shape(gpu=states, pairs=[hot] * 12 + [QUIET] * 4))
    assert found.gpu.throttled == ["thermal slowdown"]
    assert (found.pairs, found.disturbed_pairs, found.p50_s) == (4, 12, None)
    assert found.disturbed.endswith("the GPU was throttled (thermal slowdown)")
    assert row(shape()).gpu is None
    # at its power cap it keeps its number
    capped = replace(QUIET, throttled=["power cap"], computing_processes=0)
    found = row(shape(gpu=[state(throttled=["power cap"])] * 16, pairs=[capped] * 16))
    assert (found.disturbed, found.noisy) == (None, False)
    assert found.speedup.ratio == pytest.approx(2.0)
    assert found.gpu.throttled == ["power cap"]

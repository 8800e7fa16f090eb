"""Energy and state of a real GPU, while it multiplies matrices."""

from collections.abc import Callable
from typing import Any

import pytest
from busy import PROCESSORS
from tightrope.jobs.child import Child, Limits
from tightrope.measure.timed_engine import TimedEngine

pytestmark = pytest.mark.gpu

LIMITS = Limits(memory_bytes=32e9, seconds=120)
MATRIX_BYTES = 4 * 4096**2


def products() -> tuple[Callable[[Any], float], dict[str, float]]:
    """An engine that keeps the GPU busy for about a millisecond a call."""
    torch = pytest.importorskip("torch")
    matrix = torch.randn(4096, 4096, device="cuda")
    return lambda _: float((matrix @ matrix)[0, 0]), {}


def test_a_busy_gpu_has_clocks_power_and_energy_that_agree() -> None:
    engine = TimedEngine(products, [None], PROCESSORS[:1], device="cuda")
    with Child(engine, LIMITS) as worker:
        worker.ask("load")
        worker.ask("warm_up", 0, 20, 60.0, 0.1)
        block, long = worker.ask("block", 0, 0.025, 1, 60.0), worker.ask("long_block", 0, 60.0)
    state = block.gpu
    if state.sm_clock_mhz is None or long is None:
        pytest.skip("this GPU reports no clocks or no energy: a MIG instance, or a virtual GPU")
    assert block.energy_j is None
    assert 100 < state.sm_clock_mhz < 5000
    assert 10 < state.temperature_c < 110
    assert state.computing_processes in (0, None)
    assert state.memory_bytes is None or state.memory_bytes > MATRIX_BYTES
    # the long block takes about a second, so that its joules are about the watts
    assert 0.5 < long.energy_j / long.gpu.power_w < 1.5

"""CUDA graphs as far as they are seen without a GPU: PyTorch's own are played."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tightrope.artifacts.manifest import write_manifest
from tightrope.runtimes.cuda_program import CudaProgram, Queue, refusal_of_graphs, with_graphs

IDS = {"input_ids": np.ones((2, 3), np.int64)}
ENGINE = {"variant": "cuda-compile-fp16", "precision": "fp16", "options": {}, "sources": {}}
ENGINE |= {"status": "ok", "checkpoint": None, "libraries": {}, "build_s": 1.0}


def refusal(monkeypatch: pytest.MonkeyPatch, reason: str | None) -> tuple[str | None, list[str]]:
    """Why a program has no graph, where a capture fails so; and the modes of its captures."""
    modes: list[str] = []

    class Capture:
        def __init__(self, graph: Any, *, capture_error_mode: str, **rest: Any) -> None:
            modes.append(capture_error_mode)

        def __enter__(self) -> None: ...

        def __exit__(self, *error: object) -> None:
            if reason:
                raise RuntimeError(reason)

    class Graph:
        def replay(self) -> None: ...

    monkeypatch.setattr("torch.cuda.CUDAGraph", Graph)
    monkeypatch.setattr("torch.cuda.graph", Capture)
    monkeypatch.setattr("torch.cuda.synchronize", lambda: None)

    def double(input_ids: torch.Tensor) -> torch.Tensor:
        return 2 * input_ids

    def load() -> Any:
        return lambda inputs: CudaProgram(double, inputs, Queue(pool=1))(inputs)

    return refusal_of_graphs(load, IDS), modes


def test_a_capture_that_fails_is_the_reason_for_single_launches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It fails for what its own thread does, not for what threads of a runtime do meanwhile."""
    found, modes = refusal(monkeypatch, "operation not permitted when stream is capturing\nat")
    assert found == "RuntimeError: operation not permitted when stream is capturing"
    assert set(modes) == {"thread_local"}
    assert refusal(monkeypatch, None)[0] is None
    with pytest.raises(RuntimeError, match="out of memory"):
        refusal(monkeypatch, "CUDA error: out of memory")
    for refused, graphs in ((found, False), (None, True)):
        write_manifest(tmp_path / "engine.json", **ENGINE, graphs_refused=refused)
        assert with_graphs({"graphs": True, "buckets": None}, tmp_path) == {
            **{"graphs": graphs, "buckets": None}
        }

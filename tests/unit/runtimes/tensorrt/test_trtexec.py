"""trtexec is called with flags of TensorRT 11, and its times are read in seconds."""

import json
import sys
from pathlib import Path

import pytest
from latency_records import latency_record, latency_shape
from manifests import ENGINE
from programs import printed_in, run_in
from tightrope.artifacts.manifest import write_manifest
from tightrope.errors import TightropeError
from tightrope.runtimes.tensorrt.trtexec import measured, words
from tightrope.signature import of_texts

SHAPE = {"batch": 12, "sequence": 64}


def program(folder: Path, body: str) -> str:
    """A program in Python in the place of trtexec."""
    path = folder / "trtexec"
    path.write_text(f"#!{sys.executable}\nimport json, sys\n{body}\n")
    path.chmod(0o755)
    return str(path)


def engine(folder: Path) -> Path:
    """A folder whose engine has two profiles, the second for SHAPE."""
    profiles = [[[1, 1], [1, 64], [12, 64]], [[1, 1], [12, 64], [12, 64]]]
    own = {"options": {"profiles": profiles}, "inputs": of_texts().facts()}
    write_manifest(folder / "engine.json", **{**ENGINE, **own})
    return folder


def test_no_flag_of_tensorrt_10_is_used(tmp_path: Path) -> None:
    shapes = of_texts().request(*SHAPE.values())
    line = " ".join(words("trtexec", tmp_path / "model.plan", 1, shapes, tmp_path / "times.json"))
    assert "--shapes=input_ids:12x64,attention_mask:12x64" in line
    assert not [word for word in ("fp16", "int8", "best", "calib", "useCudaGraph") if word in line]


def test_the_tool_compares_the_medians_of_the_calls_on_the_gpu(repository, tmp_path) -> None:
    calls = [{"computeMs": ms, "inMs": 9.0, "latencyMs": 20.0} for ms in (1.0, 2.0, 30.0)]
    body = (
        "path = next(w for w in sys.argv if w.startswith('--exportTimes=')).partition('=')[2]\n"
        f"open(path, 'w').write({json.dumps(calls)!r})"
    )
    body += "; assert '--useProfile=1' in sys.argv"
    program(tmp_path, body)
    shape = latency_shape([[1.0]], **SHAPE, device_s=[1e-3, 3e-3, 9e-3])
    latency_record("cuda-tensorrt-fp16", shape).write(tmp_path / "a.latency.json")
    words = ("tools/trtexec.py", engine(tmp_path), tmp_path / "a.latency.json")
    told = printed_in(repository, *words, PATH=str(tmp_path))
    assert told == "12x64: 3.0000 ms on the GPU, trtexec 2.0000 ms, ratio 1.500\n"


def test_what_it_said_last_is_the_error(tmp_path: Path) -> None:
    path = program(tmp_path, "print('[E] Unknown option: --x'); sys.exit(1)")
    with pytest.raises(TightropeError, match=r"\[E\] Unknown option: --x$"):
        measured(path, engine(tmp_path), SHAPE)


def test_without_trtexec_it_says_where_that_comes_from(repository: Path, tmp_path: Path) -> None:
    words = ("tools/trtexec.py", "engines/a", "a.latency.json")
    done = run_in(repository, *words, PATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("trtexec is not on the PATH: ")
    assert done.stderr.count("\n") == 1

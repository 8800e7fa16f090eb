"""trtexec is called with flags of TensorRT 11, and its times are read in seconds."""

import json
import sys
from pathlib import Path

from latency_records import latency_record, latency_shape
from manifests import ENGINE
from programs import printed_in, run_in
from tightrope.artifacts.manifest import write_manifest
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


def record(folder: Path) -> Path:
    """The latency record of that engine."""
    shape = latency_shape([[1.0]], **SHAPE, device_s=[1e-3, 3e-3, 9e-3])
    latency_record("cuda-tensorrt-fp16", shape).write(folder / "a.latency.json")
    return folder / "a.latency.json"


def test_the_tool_compares_the_medians_of_the_calls_on_the_gpu(repository, tmp_path) -> None:
    calls = [{"computeMs": ms, "inMs": 9.0, "latencyMs": 20.0} for ms in (1.0, 2.0, 30.0)]
    body = (
        "path = next(w for w in sys.argv if w.startswith('--exportTimes=')).partition('=')[2]\n"
        f"open(path, 'w').write({json.dumps(calls)!r})\n"
        "assert {'--useProfile=1', '--shapes=input_ids:12x64,attention_mask:12x64'} < {*sys.argv}\n"
        # flags of TensorRT 10
        "line = ' '.join(sys.argv[2:])\n"
        "assert not [w for w in ('fp16', 'int8', 'best', 'calib', 'useCudaGraph') if w in line]"
    )
    program(tmp_path, body)
    words = ("tools/trtexec.py", engine(tmp_path), record(tmp_path))
    told = printed_in(repository, *words, PATH=str(tmp_path))
    assert told == "12x64: 3.0000 ms on the GPU, trtexec 2.0000 ms, ratio 1.500\n"


def test_what_it_said_last_is_the_error(repository: Path, tmp_path: Path) -> None:
    program(tmp_path, "print('[E] Unknown option: --x'); sys.exit(1)")
    words = ("tools/trtexec.py", engine(tmp_path), record(tmp_path))
    done = run_in(repository, *words, PATH=str(tmp_path))
    assert (done.returncode, done.stderr.partition(": ")[2]) == (1, "[E] Unknown option: --x\n")


def test_without_trtexec_it_says_where_that_comes_from(repository: Path, tmp_path: Path) -> None:
    words = ("tools/trtexec.py", "engines/a", "a.latency.json")
    done = run_in(repository, *words, PATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("trtexec is not on the PATH: ")
    assert done.stderr.count("\n") == 1

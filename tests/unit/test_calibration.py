import json
import resource
from pathlib import Path

import numpy as np
import pytest
from tightrope.calibration import (
    calibrate,
    calibration_rows,
    minmax_ranges,
    read_cache,
    write_cache,
)
from tightrope.errors import ArtifactError, TightropeError
from tightrope.files import sha256
from tightrope.inputs import batches_of_equal_length
from tightrope.onnx_graph import load_onnx, run_onnx, save_onnx
from tightrope.supervise import supervised
from tiny_model import LIMITS, LONGEST, SAMPLES, TinyModel


def make_cache(model: TinyModel, target: Path, samples: int, method: str = "minmax") -> dict:
    calibrate(
        model.simplified,
        model.data,
        model.checkpoint,
        target,
        method=method,
        samples=samples,
        max_sequence=LONGEST,
        threads=1,
    )
    return read_cache(target, model=model.simplified)


def outputs_of(model: TinyModel, names: list[str], samples: int) -> dict[str, list[np.ndarray]]:
    """Those tensors of the graph on the first samples, each sample run alone."""
    graph = load_onnx(model.simplified)
    kept = {one.name for one in graph.graph.output}
    graph.graph.output.extend(type(graph.graph.output[0])(name=n) for n in names if n not in kept)
    found: dict[str, list[np.ndarray]] = {name: [] for name in names}
    from onnxruntime import InferenceSession

    session = InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    rows = calibration_rows(model.data, model.checkpoint, samples=samples, max_sequence=LONGEST)
    for row in rows:
        batch = {name: array[None] for name, array in row.items()}
        for name, value in zip(names, session.run(names, batch), strict=True):
            found[name].append(value)
    return found


def test_a_repeat_gives_the_same_bytes(tiny: TinyModel, tmp_path: Path) -> None:
    make_cache(tiny, tmp_path / "again.json", SAMPLES)
    assert (tmp_path / "again.json").read_bytes() == tiny.minmax.read_bytes()


def test_it_says_of_what_it_was_made(tiny: TinyModel) -> None:
    cache = read_cache(tiny.minmax, model=tiny.simplified)
    assert (cache["method"], cache["samples"], cache["schema"]) == ("minmax", SAMPLES, 1)
    assert cache["options"]["max_sequence"] == LONGEST
    assert cache["model_sha256"] == sha256(tiny.simplified)
    assert cache["samples_sha256"] == sha256(tiny.data.parent / "calibration.jsonl")
    assert str(tiny.data.parent.parent) not in tiny.minmax.read_text()


def test_ranges_are_the_lowest_and_highest_value_of_the_first_samples(
    tiny: TinyModel, tmp_path: Path
) -> None:
    ranges = make_cache(tiny, tmp_path / "few.json", 5)["ranges"]
    graph = load_onnx(tiny.simplified).graph
    made = {name for node in graph.node for name in node.output} & set(ranges)
    assert len(made) > 20
    for name, arrays in outputs_of(tiny, sorted(made), 5).items():
        low, high = min(array.min() for array in arrays), max(array.max() for array in arrays)
        assert ranges[name] == pytest.approx([low, high], abs=1e-4), name


def test_samples_after_the_first_are_not_looked_at(tiny: TinyModel, tmp_path: Path) -> None:
    few = make_cache(tiny, tmp_path / "few.json", 5)["ranges"]
    many = read_cache(tiny.minmax, model=tiny.simplified)["ranges"]
    assert set(few) == set(many)
    wider = [name for name in few if many[name] != few[name]]
    assert len(wider) > len(few) / 2
    for name, (low, high) in few.items():
        assert many[name][0] <= low + 1e-4
        assert many[name][1] >= high - 1e-4
    rows = calibration_rows(tiny.data, tiny.checkpoint, samples=5, max_sequence=LONGEST)
    batches = list(batches_of_equal_length(rows, 16))
    assert minmax_ranges(tiny.simplified, batches, threads=1) == few


def test_what_is_quantized_has_a_range(tiny: TinyModel) -> None:
    ranges = read_cache(tiny.minmax, model=tiny.simplified)["ranges"]
    graph = load_onnx(tiny.simplified).graph
    constants = {tensor.name for tensor in graph.initializer}
    weighted = [
        node
        for node in graph.node
        if node.op_type in ("MatMul", "Gemm") and node.input[1] in constants
    ]
    assert len(weighted) == 14  # query, key, value, output and feed-forward of 2 layers; head
    assert {node.input[0] for node in weighted} <= set(ranges)


def test_the_nncf_cache_is_a_list_of_samples_without_ranges(tiny: TinyModel) -> None:
    cache = read_cache(tiny.nncf, model=tiny.simplified)
    assert (cache["method"], cache["samples"], cache["ranges"]) == ("nncf", SAMPLES, {})


def test_more_samples_than_there_are_is_an_error(tiny: TinyModel, tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match="40 calibration examples, 41 are asked for"):
        make_cache(tiny, tmp_path / "a.json", 41)
    assert not (tmp_path / "a.json").exists()


def test_the_cache_of_another_model_is_refused(tiny: TinyModel, tmp_path: Path) -> None:
    other = load_onnx(tiny.simplified)
    other.graph.name = "other"
    save_onnx(other, tmp_path / "other.onnx")
    with pytest.raises(ArtifactError, match=r"minmax-24\.json: the cache of another model than"):
        read_cache(tiny.minmax, model=tmp_path / "other.onnx")


@pytest.mark.parametrize(
    "change",
    [{"samples": 12}, {"method": "nncf"}, {"ranges": {}}, {"surprise": 1}, {"seal": "0" * 12}],
    ids=str,
)
def test_an_edited_cache_is_refused(tiny: TinyModel, tmp_path: Path, change: dict) -> None:
    document = json.loads(tiny.minmax.read_text())
    (tmp_path / "a.json").write_text(json.dumps({**document, **change}))
    with pytest.raises(ArtifactError, match=r"a\.json: not the cache that was written"):
        read_cache(tmp_path / "a.json", model=tiny.simplified)


def test_one_edited_bound_is_enough_to_be_refused(tiny: TinyModel, tmp_path: Path) -> None:
    document = json.loads(tiny.minmax.read_text())
    name = next(iter(document["ranges"]))
    document["ranges"][name][1] *= 1.0000001
    (tmp_path / "a.json").write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match="not the cache that was written"):
        read_cache(tmp_path / "a.json", model=tiny.simplified)


@pytest.mark.parametrize("text", ["[]", "{}", "1"])
def test_json_that_is_no_cache_is_refused(tiny: TinyModel, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ArtifactError, match="not the cache that was written"):
        read_cache(tmp_path / "a.json", model=tiny.simplified)


def test_a_cache_laid_out_anew_is_still_the_one_that_was_written(
    tiny: TinyModel, tmp_path: Path
) -> None:
    fields = {"model_sha256": sha256(tiny.simplified), "ranges": {"b": [0.1, 0.2], "a": [0, 1]}}
    write_cache(tmp_path / "a.json", **fields)
    (tmp_path / "b.json").write_text(json.dumps(json.loads((tmp_path / "a.json").read_text())))
    assert read_cache(tmp_path / "b.json", model=tiny.simplified)["ranges"] == fields["ranges"]


def grown_bytes(path: Path, few: list, many: list) -> int:
    """By how much the peak of resident memory grows from `few` batches to `many`."""
    minmax_ranges(path, few, threads=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    minmax_ranges(path, many, threads=1)
    return 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def test_memory_is_that_of_one_batch_whatever_the_sample_count(tiny: TinyModel) -> None:
    draw = np.random.default_rng(0)
    ids = draw.integers(5, 150, (16, LONGEST))
    batch = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    names = list(read_cache(tiny.minmax, model=tiny.simplified)["ranges"])
    activations = len(names) * 16 * LONGEST * 64 * 4  # all of them of one batch, in bytes
    grown = supervised(grown_bytes, tiny.simplified, [batch] * 2, [batch] * 40, limits=LIMITS)
    assert grown < 5 * activations < 38 * activations


def test_calibrating_leaves_the_batches_as_they_are(tiny: TinyModel) -> None:
    rows = calibration_rows(tiny.data, tiny.checkpoint, samples=4, max_sequence=LONGEST)
    batches = list(batches_of_equal_length(rows, 1))
    before = run_onnx(load_onnx(tiny.simplified), batches, threads=1)
    minmax_ranges(tiny.simplified, batches, threads=1)
    after = run_onnx(load_onnx(tiny.simplified), batches, threads=1)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)

import json
import random
import struct
from pathlib import Path

import pytest
from quantized_files import with_ranges
from tightrope.artifacts.failures import write_failure
from tightrope.errors import ArtifactError, TightropeError
from tightrope.int8.calibrate import read_any_cache, write_cache
from tightrope.int8.tensorrt_cache import export_cache, export_text, import_cache, import_text
from tiny_model import SAMPLES, TinyModel

# 1.0 = 3f800000, 2.0 = 40000000, 0.5 = 3f000000, 1.5 = 3fc00000, 1/127 = 3c010204 rounded
TEXT = """\
TRT-8601-EntropyCalibration2
input_ids: 3c010204
/bert/embeddings/word_embeddings/Gather_output_0: 3f800000
(Unnamed Layer* 8) [Constant]_output: 3f000000
bert/encoder/layer_0/attention/self/query/BiasAdd:0: 40000000
/bert/encoder/layer.0/a: b [Matrix Multiply] : 3fc00000
"""
RANGES = {
    "input_ids": [-127 * 0.007874015718698502, 127 * 0.007874015718698502],
    "/bert/embeddings/word_embeddings/Gather_output_0": [-127.0, 127.0],
    "(Unnamed Layer* 8) [Constant]_output": [-63.5, 63.5],
    "bert/encoder/layer_0/attention/self/query/BiasAdd:0": [-254.0, 254.0],
    "/bert/encoder/layer.0/a: b [Matrix Multiply] ": [-190.5, 190.5],
}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "calibration.cache").write_text(TEXT)
    return tmp_path / "calibration.cache"


def test_a_text_gives_method_and_symmetric_ranges_however_its_lines_end() -> None:
    expected = import_text(TEXT, path="a")
    assert expected == ("entropy", RANGES) and list(expected[1]) == list(RANGES)
    assert import_text(TEXT.replace("\n", "\r\n"), path="a") == expected
    assert import_text(TEXT.rstrip("\n"), path="a") == expected
    assert import_text(TEXT + "\n\n", path="a") == expected
    assert import_text(TEXT.replace("3f8", "3F8").replace("3fc", "3FC"), path="a") == expected
    ranges = {"a\u2028b\x0c c": [-127.0, 127.0]}
    assert import_text(export_text(ranges, method="minmax"), path="a") == ("minmax", ranges)
    legacy = "TRT-100300-LegacyCalibration\nx: 3f800000\n"
    assert import_text(legacy, path="a") == ("percentile", {"x": [-127.0, 127.0]})


TWO = "TRT-8601-MinMaxCalibration\nx: 3f800000\n"
NO_HEADER = "line 1: no header of a calibration cache"
NO_LINE = "line 3: not 'tensor: 8 hex digits'"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((f"{one}\nx: 3f800000\n", NO_HEADER) for one in ("", "x: 3f800000")),
        ("TRT-8601-BestCalibration\nx: 3f800000\n", NO_HEADER),
        *((f"{TWO}{line}\nz: 3f800000\n", NO_LINE) for line in ("", "y", "y:3f800000")),
        *((f"{TWO}y: {digits}\n", NO_LINE) for digits in ("3f80000", "3f8000000", "0x3f8000")),
        (f"{TWO}: 3f800000\n", NO_LINE),
        (f"{TWO}y: 80000000\n", "line 3: scale -0 of y"),
        (f"{TWO}y: bf800000\n", "line 3: scale -1 of y"),
        (f"{TWO}y: 7fc00000\n", "line 3: scale nan of y"),
        (f"{TWO}x: 3f800000\n", "line 3: x for the second time"),
        ("TRT-8601-MinMaxCalibration\n", "no tensors after the header"),
    ],
)
def test_a_text_that_is_no_cache_is_refused_with_the_line(text: str, said: str) -> None:
    with pytest.raises(TightropeError, match=rf"a\.cache: {said}"):
        import_text(text, path="a.cache")


def test_a_scale_is_the_absolute_maximum_over_127_and_comes_back_to_the_bit() -> None:
    for bounds, digits in (([-127.0, 3.0], "3f800000"), ([2.0, 63.5], "3f000000")):
        text = export_text({"a: b": bounds}, method="minmax", version="8601")
        assert text == f"TRT-8601-MinMaxCalibration\na: b: {digits}\n"
    draw = random.Random(0)
    numbers = [1, 2, 0x007FFFFF, 0x00800000, 0x7F7FFFFF]  # the least and the largest of all
    numbers += [draw.randrange(1, 0x7F800000) for _ in range(2000)]
    lines = [f"t{i}: {number:08x}" for i, number in enumerate(numbers)]
    text = "\n".join(["TRT-100000-EntropyCalibration2", *lines, ""])
    method, ranges = import_text(text, path="a")
    # through the file of the cache, where numbers are decimal
    ranges = json.loads(json.dumps(ranges))
    assert export_text(ranges, method=method) == text
    for i, number in enumerate(numbers[:100]):
        (scale,) = struct.unpack(">f", number.to_bytes(4, "big"))
        assert ranges[f"t{i}"][1] / 127 == scale


@pytest.mark.parametrize(
    ("ranges", "method", "version", "said"),
    [
        (RANGES, "nncf", "8601", "no calibration by nncf; export a cache of min"),
        (RANGES, "minmax", "8.6.1", r"no version; TensorRT 8\.6\.1 is 8601"),
        ({"x y": [0.0, 1e41]}, "minmax", "8601", r"tensor x y: the range .* has no scale"),
        ({"x\ny": [-1.0, 1.0]}, "minmax", "8601", "its name has a line break"),
    ],
)
def test_what_a_text_cannot_hold_is_refused(ranges, method, version, said) -> None:
    with pytest.raises(TightropeError, match=said):
        export_text(ranges, method=method, version=version)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("entropy.json", r"the name of a cache is METHOD-SAMPLES\.json"),
        ("entropy-0.json", r"the name of a cache is METHOD-SAMPLES\.json"),
        ("minmax-8.json", r"minmax by its name, .* name it entropy-8\.json"),
    ],
)
def test_the_name_of_the_target_must_say_method_and_samples(tiny, text, tmp_path, name, said):
    with pytest.raises(TightropeError, match=said):
        import_cache(text, tiny.simplified, tmp_path / name)
    assert not (tmp_path / name).exists()


def test_files_that_are_none_and_the_text_of_another_model_are_refused(tiny, text, tmp_path):
    target, other = tmp_path / "entropy-8.json", tmp_path / "other.cache"
    other.write_text(TEXT.replace("input_ids", "ids"))
    with pytest.raises(TightropeError, match=r"none of its 5 tensors is in .*simplified\.onnx"):
        import_cache(other, tiny.simplified, target)
    with pytest.raises(TightropeError, match=r"gone: cannot be read"):
        import_cache(tmp_path / "gone", tiny.simplified, target)
    (tmp_path / "plan").write_bytes(b"ftrt\xff\xfe\x00")
    with pytest.raises(TightropeError, match="plan: no text"):
        import_cache(tmp_path / "plan", tiny.simplified, target)
    with pytest.raises(ArtifactError, match=r"calibration\.cache: no readable ONNX file|not the"):
        import_cache(text, text, target)
    with pytest.raises(TightropeError, match="a folder; give the path of a file"):
        export_cache(target, tmp_path, force=True)
    assert not target.exists()


def test_what_is_no_cache_for_tensorrt_is_not_exported(tiny: TinyModel, tmp_path: Path) -> None:
    cache, target = tmp_path / "a.json", tmp_path / "out"
    cache.write_text(tiny.minmax.read_text().replace('"minmax"', '"entropy"'))
    with pytest.raises(ArtifactError, match=r"a\.json: its content is not what was written"):
        export_cache(cache, target)
    write_failure(cache, reason="not calibrated: out of memory", transient=True)
    with pytest.raises(TightropeError, match=r"a\.json: not calibrated: out of memory"):
        export_cache(cache, target)
    with pytest.raises(TightropeError, match=r"nncf-24\.json: nncf keeps no ranges"):
        export_cache(tiny.nncf, target)
    facts = {"method": "minmax", "samples": 1, "model_sha256": "", "channels": {}}
    write_cache(cache, **facts, ranges={"x": [0.0, 1e300]})
    with pytest.raises(TightropeError, match=r"a\.json: tensor x: the range"):
        export_cache(cache, target)
    assert not target.exists()


def test_ranges_come_back_from_the_text_and_no_file_is_replaced_unasked(tiny, tmp_path) -> None:
    """By the command line: tests/workflow/test_tensorrt_11_page.py."""
    text, cache = tmp_path / "out.cache", tmp_path / f"minmax-{SAMPLES}.json"
    # with two tensors more, which were zero on every sample
    source = with_ranges(tiny, tmp_path / "zeros.json", {"mask": [0.0, 0.0], "where": [0.0, 0.0]})
    assert export_cache(source, text, version="8601") == 2
    header, *lines = text.read_text().splitlines()
    original = read_any_cache(tiny.minmax)["ranges"]
    assert (header, len(lines)) == ("TRT-8601-MinMaxCalibration", len(original))
    text.write_text(text.read_text() + "(Unnamed Layer* 8) [Constant]_output: 3f000000\n")
    assert import_cache(text, tiny.simplified, cache) == 1
    for name, (low, high) in read_any_cache(cache)["ranges"].items():
        assert low == -high
        assert high == pytest.approx(max(map(abs, original[name])), rel=1e-6)
    with pytest.raises(TightropeError, match=r"\.json: exists; take another path, or --force to r"):
        import_cache(text, tiny.simplified, cache)
    assert import_cache(text, tiny.simplified, cache, force=True) == 1

import json
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from tightrope.artifacts.failures import write_failure
from tightrope.artifacts.files import sha256
from tightrope.errors import ArtifactError, TightropeError
from tightrope.int8.calibrate import calibration_batches, read_any_cache, read_cache, write_cache
from tightrope.int8.tensorrt_cache import export_cache, export_text, import_cache, import_text
from tightrope.onnx.file import save_onnx
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
BERT_NAMES = list(RANGES)[1:4]


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A graph with the names of a BERT, of the text all but the input and the last."""
    first, second, third = BERT_NAMES
    nodes = [
        helper.make_node("Relu", ["hidden"], [first]),
        helper.make_node("Relu", [first], [second]),
        helper.make_node("Relu", [second], [third]),
    ]
    value = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [1, 4])
    last = helper.make_tensor_value_info(third, TensorProto.FLOAT, [1, 4])
    model = helper.make_model(helper.make_graph(nodes, "bert", [value], [last]))
    save_onnx(model, tmp_path / "bert.onnx")
    return tmp_path / "bert.onnx"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "calibration.cache").write_text(TEXT)
    return tmp_path / "calibration.cache"


def command_line(repository: Path, *words: object) -> subprocess.CompletedProcess[str]:
    script = repository / "tools" / "tensorrt_cache.py"
    words = (sys.executable, script, *words)
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("algorithm", "method"),
    [
        ("EntropyCalibration", "entropy"),
        ("MinMaxCalibration", "minmax"),
        ("LegacyCalibration", "percentile"),
    ],
)
def test_the_header_gives_the_method(algorithm: str, method: str) -> None:
    text = f"TRT-100300-{algorithm}\nx: 3f800000\n"
    assert import_text(text, path="a") == (method, {"x": [-127.0, 127.0]})


def test_a_text_gives_method_and_symmetric_ranges_however_its_lines_end() -> None:
    expected = import_text(TEXT, path="a")
    assert expected == ("entropy", RANGES) and list(expected[1]) == list(RANGES)
    assert import_text(TEXT.replace("\n", "\r\n"), path="a") == expected
    assert import_text(TEXT.rstrip("\n"), path="a") == expected
    assert import_text(TEXT + "\n\n", path="a") == expected
    assert import_text(TEXT.replace("3f8", "3F8").replace("3fc", "3FC"), path="a") == expected


def test_only_line_ends_separate_lines() -> None:
    ranges = {"a\u2028b\x0c c": [-127.0, 127.0]}
    assert import_text(export_text(ranges, method="minmax"), path="a") == ("minmax", ranges)


TWO = "TRT-8601-MinMaxCalibration\nx: 3f800000\n"
NO_HEADER = "line 1: no header of a calibration cache"
NO_LINE = "line 3: not 'tensor: 8 hex digits'"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((f"{one}\nx: 3f800000\n", NO_HEADER) for one in ("", "TRT-8601", "x: 3f800000")),
        ("TRT-8601-BestCalibration\nx: 3f800000\n", NO_HEADER),
        (" TRT-8601-EntropyCalibration2\nx: 3f800000\n", NO_HEADER),
        *((f"{TWO}{line}\nz: 3f800000\n", NO_LINE) for line in ("", "y", "y: ", "y:3f800000")),
        *((f"{TWO}y: {digits}\n", NO_LINE) for digits in ("3f80000", "3f8000000", "0x3f8000")),
        (f"{TWO}: 3f800000\n", NO_LINE),
        *((f"{TWO}y: {digits}\n", "line 3: scale -?0 of y") for digits in ("00000000", "80000000")),
        (f"{TWO}y: bf800000\n", "line 3: scale -1 of y"),
        (f"{TWO}y: 7f800000\n", "line 3: scale inf of y"),
        (f"{TWO}y: 7fc00000\n", "line 3: scale nan of y"),
        (f"{TWO}x: 3f800000\n", "line 3: x for the second time"),
        ("TRT-8601-MinMaxCalibration\n", "no tensors after the header"),
    ],
)
def test_a_text_that_is_no_cache_is_refused_with_the_line(text: str, said: str) -> None:
    with pytest.raises(TightropeError, match=rf"a\.cache: {said}"):
        import_text(text, path="a.cache")


@pytest.mark.parametrize(
    ("bounds", "digits"),
    [([-127.0, 3.0], "3f800000"), ([-1.0, 1.0], "3c010204"), ([2.0, 63.5], "3f000000")],
)
def test_a_scale_is_the_absolute_maximum_over_127(bounds: list[float], digits: str) -> None:
    text = export_text({"a: b": bounds}, method="minmax", version="8601")
    assert text == f"TRT-8601-MinMaxCalibration\na: b: {digits}\n"


def test_every_positive_float32_comes_back_to_the_bit() -> None:
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
        ({"x y": [0.0, 0.0]}, "minmax", "8601", r"tensor x y: the range .* has no scale"),
        ({"x y": [0.0, 1e41]}, "minmax", "8601", r"tensor x y: the range .* has no scale"),
        ({"x\ny": [-1.0, 1.0]}, "minmax", "8601", "its name has a line break"),
    ],
)
def test_what_a_text_cannot_hold_is_refused(
    ranges: dict[str, list[float]], method: str, version: str, said: str
) -> None:
    with pytest.raises(TightropeError, match=said):
        export_text(ranges, method=method, version=version)


def test_an_imported_cache_says_where_it_is_from_and_goes_out_as_it_came_in(
    bert: Path, text: Path, tmp_path: Path
) -> None:
    target = tmp_path / "calibration" / "entropy-512.json"
    assert import_cache(text, bert, target) == 2
    assert export_cache(target, tmp_path / "out", version="8601") == 0
    assert set((tmp_path / "out").read_text().splitlines()) == {
        line for line in TEXT.splitlines() if line.rpartition(": ")[0] in {"", *BERT_NAMES}
    }
    cache = read_cache(target, model=bert)
    assert cache == {
        "channels": {},
        "imported": "TRT-8601-EntropyCalibration2",
        "libraries": {},
        "method": "entropy",
        "model_sha256": sha256(bert),
        "options": {},
        "ranges": {name: RANGES[name] for name in BERT_NAMES},
        "samples": 512,
        "samples_sha256": None,
        "schema": 2,
    }


@pytest.mark.parametrize("name", ["entropy.json", "entropy-0.json", "entropy-8"])
def test_the_name_of_the_target_must_say_method_and_samples(
    bert: Path, text: Path, tmp_path: Path, name: str
) -> None:
    with pytest.raises(TightropeError, match=r"the name of a cache is METHOD-SAMPLES\.json"):
        import_cache(text, bert, tmp_path / name)


def test_a_method_in_the_name_that_contradicts_the_header_is_refused(
    bert: Path, text: Path, tmp_path: Path
) -> None:
    with pytest.raises(TightropeError, match=r"minmax by its name, .* name it entropy-8\.json"):
        import_cache(text, bert, tmp_path / "minmax-8.json")
    assert not (tmp_path / "minmax-8.json").exists()


def test_the_text_of_another_model_is_refused(tiny: TinyModel, text: Path, tmp_path: Path) -> None:
    target = tmp_path / "entropy-8.json"
    text.write_text(TEXT.replace("input_ids", "ids"))
    with pytest.raises(TightropeError, match=r"none of its 5 tensors is in .*simplified\.onnx"):
        import_cache(text, tiny.simplified, target)
    assert not target.exists()


def test_files_that_are_none_are_refused(bert: Path, text: Path, tmp_path: Path) -> None:
    target = tmp_path / "entropy-8.json"
    with pytest.raises(TightropeError, match=r"gone: cannot be read"):
        import_cache(tmp_path / "gone", bert, target)
    (tmp_path / "plan").write_bytes(b"ftrt\xff\xfe\x00")
    with pytest.raises(TightropeError, match="plan: no text"):
        import_cache(tmp_path / "plan", bert, target)
    with pytest.raises(ArtifactError, match=r"calibration\.cache: no readable ONNX file|not the"):
        import_cache(text, text, target)
    with pytest.raises(TightropeError, match="a folder; give the path of a file"):
        export_cache(target, tmp_path, force=True)


def with_zeros(cache: Path, target: Path) -> Path:
    """The cache with two tensors more, which were zero on every sample."""
    document = read_any_cache(cache)
    document["ranges"] |= {"mask": [0.0, 0.0], "where": [0.0, 0.0]}
    write_cache(target, **document)
    return target


def test_a_cache_is_exported_without_its_model(tiny: TinyModel, tmp_path: Path) -> None:
    source = with_zeros(tiny.minmax, tmp_path / "zeros.json")
    cache = read_any_cache(source)
    zeros = [name for name, bounds in cache["ranges"].items() if not any(bounds)]
    assert export_cache(source, tmp_path / "out.cache") == len(zeros) == 2
    header, *lines = (tmp_path / "out.cache").read_text().splitlines()
    assert header == "TRT-100000-MinMaxCalibration"
    assert len(lines) == len(cache["ranges"]) - len(zeros)
    for line in lines:
        name, _, digits = line.rpartition(": ")
        (scale,) = np.frombuffer(bytes.fromhex(digits), dtype=">f4")
        assert scale == np.float32(max(map(abs, cache["ranges"][name])) / 127)


def test_an_edited_cache_and_a_failure_are_not_exported(tiny: TinyModel, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(tiny.minmax.read_text().replace('"minmax"', '"entropy"'))
    with pytest.raises(ArtifactError, match=r"a\.json: its content is not what was written"):
        export_cache(tmp_path / "a.json", tmp_path / "out")
    write_failure(tmp_path / "a.json", reason="not calibrated: out of memory", transient=True)
    with pytest.raises(TightropeError, match=r"a\.json: not calibrated: out of memory"):
        export_cache(tmp_path / "a.json", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_cache_that_tensorrt_cannot_hold_is_named(tiny: TinyModel, tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match=r"nncf-24\.json: nncf keeps no ranges"):
        export_cache(tiny.nncf, tmp_path / "out")
    write_cache(tmp_path / "a.json", method="minmax", ranges={"x": [0.0, 1e300]})
    with pytest.raises(TightropeError, match=r"a\.json: tensor x: the range"):
        export_cache(tmp_path / "a.json", tmp_path / "out")


def test_a_cache_without_samples_gives_none_to_an_engine(tiny: TinyModel, tmp_path: Path) -> None:
    text, cache = tmp_path / "out", tmp_path / f"minmax-{SAMPLES}.json"
    export_cache(tiny.minmax, text)
    import_cache(text, tiny.simplified, cache)
    with pytest.raises(TightropeError, match=r"imported \(TRT-100000-MinMaxCalibration\), it hol"):
        calibration_batches(
            onnx=str(tiny.simplified),
            calibration=str(cache),
            data=str(tiny.split("calibration")),
            checkpoint=str(tiny.checkpoint),
        )


def test_the_command_line_exports_and_imports(
    repository: Path, tiny: TinyModel, tmp_path: Path
) -> None:
    text, cache = tmp_path / "out.cache", tmp_path / f"minmax-{SAMPLES}.json"
    source = with_zeros(tiny.minmax, tmp_path / "zeros.json")
    done = command_line(repository, "export", source, text, "--tensorrt", "8601")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "tensors left out: 2, zero on every sample\n"
    assert text.read_text().startswith("TRT-8601-MinMaxCalibration\n")
    text.write_text(text.read_text() + "(Unnamed Layer* 8) [Constant]_output: 3f000000\n")
    done = command_line(repository, "import", text, tiny.simplified, cache)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"tensors left out: 1, not in {tiny.simplified}\n"
    made, original = read_any_cache(cache), read_any_cache(tiny.minmax)
    for name, (low, high) in made["ranges"].items():
        assert low == -high
        assert high == pytest.approx(max(map(abs, original["ranges"][name])), rel=1e-6)


def test_the_command_line_says_an_error_in_one_line_and_replaces_only_by_force(
    repository: Path, bert: Path, text: Path, tmp_path: Path
) -> None:
    target = tmp_path / "entropy-8.json"
    target.write_text("mine")
    done = command_line(repository, "import", text, bert, target)
    expected = f"error: {target}: exists; take another path, or --force to replace it\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
    assert target.read_text() == "mine"
    assert command_line(repository, "import", text, bert, target, "--force").returncode == 0
    assert target.read_text() != "mine"
    done = command_line(repository, "export", tmp_path / "gone.json", tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)

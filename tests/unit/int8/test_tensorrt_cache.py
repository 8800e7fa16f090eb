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


def test_a_text_of_tensorrt_gives_method_and_symmetric_ranges() -> None:
    method, ranges = import_text(TEXT, path="a.cache")
    assert (method, ranges) == ("entropy", RANGES)
    assert list(ranges) == list(RANGES)


@pytest.mark.parametrize(
    ("algorithm", "method"),
    [
        ("EntropyCalibration2", "entropy"),
        ("EntropyCalibration", "entropy"),
        ("MinMaxCalibration", "minmax"),
        ("LegacyCalibration", "percentile"),
    ],
)
def test_the_header_gives_the_method(algorithm: str, method: str) -> None:
    text = f"TRT-100300-{algorithm}\nx: 3f800000\n"
    assert import_text(text, path="a") == (method, {"x": [-127.0, 127.0]})


def test_lines_may_end_as_on_windows_and_the_last_one_anyhow() -> None:
    expected = import_text(TEXT, path="a")
    assert import_text(TEXT.replace("\n", "\r\n"), path="a") == expected
    assert import_text(TEXT.rstrip("\n"), path="a") == expected
    assert import_text(TEXT + "\n\n", path="a") == expected
    assert import_text(TEXT.replace("3f8", "3F8").replace("3fc", "3FC"), path="a") == expected


def test_only_line_ends_separate_lines() -> None:
    ranges = {"a\u2028b\x0c c": [-127.0, 127.0]}
    assert import_text(export_text(ranges, method="minmax"), path="a") == ("minmax", ranges)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "calibration",
        "TRT-8601",
        "TRT-8601-BestCalibration",
        "TRT-8601-EntropyCalibration3",
        "RTR-8601-EntropyCalibration2",
        "x: 3f800000",
        " TRT-8601-EntropyCalibration2",
    ],
)
def test_a_text_without_a_header_is_refused(header: str) -> None:
    with pytest.raises(TightropeError, match=r"a\.cache: line 1: no header of a calibration cache"):
        import_text(f"{header}\nx: 3f800000\n", path="a.cache")


@pytest.mark.parametrize(
    "line",
    [
        "y",
        "y:",
        "y: ",
        "y: 3f80000",
        "y: 3f8000000",
        "y: 0x3f8000",
        "y: 3f80000g",
        "y:3f800000",
        ": 3f800000",
        "y: 3f800000 ",
        "",
    ],
)
def test_a_malformed_line_is_refused_with_its_number(line: str) -> None:
    text = f"TRT-8601-MinMaxCalibration\nx: 3f800000\n{line}\nz: 3f800000\n"
    with pytest.raises(TightropeError, match=r"a\.cache: line 3: not 'tensor: 8 hex digits'"):
        import_text(text, path="a.cache")


@pytest.mark.parametrize(
    ("digits", "said"),
    [
        ("00000000", "scale 0 of y"),
        ("80000000", "scale -0 of y"),
        ("bf800000", "scale -1 of y"),
        ("7f800000", "scale inf of y"),
        ("ff800000", "scale -inf of y"),
        ("7fc00000", "scale nan of y"),
    ],
)
def test_a_scale_that_is_no_positive_number_is_refused(digits: str, said: str) -> None:
    text = f"TRT-8601-MinMaxCalibration\nx: 3f800000\ny: {digits}\n"
    with pytest.raises(TightropeError, match=f"a.cache: line 3: {said}"):
        import_text(text, path="a.cache")


def test_a_tensor_for_the_second_time_is_refused() -> None:
    text = "TRT-8601-MinMaxCalibration\nx y: 3f800000\nx y: 3f800000\n"
    with pytest.raises(TightropeError, match="line 3: x y for the second time"):
        import_text(text, path="a.cache")


def test_a_text_that_ends_after_its_header_is_refused() -> None:
    with pytest.raises(TightropeError, match=r"a\.cache: no tensors after the header"):
        import_text("TRT-8601-MinMaxCalibration\n", path="a.cache")


@pytest.mark.parametrize(
    ("bounds", "digits"),
    [
        ([-127.0, 3.0], "3f800000"),
        ([-3.0, 127.0], "3f800000"),
        ([0.0, 254.0], "40000000"),
        ([-1.0, 1.0], "3c010204"),
        ([2.0, 63.5], "3f000000"),
        ([-190.5, -1.0], "3fc00000"),
    ],
)
def test_a_scale_is_the_absolute_maximum_over_127(bounds: list[float], digits: str) -> None:
    text = export_text({"a: b": bounds}, method="minmax", version="8601")
    assert text == f"TRT-8601-MinMaxCalibration\na: b: {digits}\n"


def test_a_text_comes_back_to_the_byte() -> None:
    method, ranges = import_text(TEXT, path="a")
    assert export_text(ranges, method=method, version="8601") == TEXT


def test_every_positive_float32_comes_back_to_the_bit() -> None:
    draw = random.Random(0)
    numbers = [1, 2, 0x007FFFFF, 0x00800000, 0x7F7FFFFF]  # the least and the largest of all
    numbers += [draw.randrange(1, 0x7F800000) for _ in range(20000)]
    lines = [f"t{i}: {number:08x}" for i, number in enumerate(numbers)]
    text = "\n".join(["TRT-100000-EntropyCalibration2", *lines, ""])
    method, ranges = import_text(text, path="a")
    # through the file of the cache, where numbers are decimal
    ranges = json.loads(json.dumps(ranges))
    assert export_text(ranges, method=method) == text
    for i, number in enumerate(numbers[:100]):
        (scale,) = struct.unpack(">f", number.to_bytes(4, "big"))
        assert ranges[f"t{i}"][1] / 127 == scale


@pytest.mark.parametrize("method", ["nncf", "random"])
def test_a_method_that_tensorrt_does_not_have_is_refused(method: str) -> None:
    with pytest.raises(TightropeError, match=f"no calibration by {method}; export a cache of min"):
        export_text(RANGES, method=method)


@pytest.mark.parametrize("version", ["", "8.6.1", "-1", "8601\n"])
def test_a_version_is_digits(version: str) -> None:
    with pytest.raises(TightropeError, match=r"no version; TensorRT 8\.6\.1 is 8601"):
        export_text(RANGES, method="minmax", version=version)


@pytest.mark.parametrize("bounds", [[0.0, 0.0], [-1e-44, 1e-44], [0.0, 1e41], [-1e400, 0.0]])
def test_a_range_without_a_float32_scale_is_refused(bounds: list[float]) -> None:
    with pytest.raises(TightropeError, match=r"tensor x y: the range .* has no scale"):
        export_text({"x y": bounds}, method="minmax")


def test_a_name_with_a_line_break_is_refused() -> None:
    with pytest.raises(TightropeError, match="its name has a line break"):
        export_text({"x\ny": [-1.0, 1.0]}, method="minmax")


def test_an_imported_cache_says_where_it_is_from(bert: Path, text: Path, tmp_path: Path) -> None:
    target = tmp_path / "calibration" / "entropy-512.json"
    assert import_cache(text, bert, target) == 2
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


def test_an_imported_cache_goes_out_as_it_came_in(bert: Path, text: Path, tmp_path: Path) -> None:
    import_cache(text, bert, tmp_path / "entropy-8.json")
    assert export_cache(tmp_path / "entropy-8.json", tmp_path / "out", version="8601") == 0
    assert set((tmp_path / "out").read_text().splitlines()) == {
        line for line in TEXT.splitlines() if line.rpartition(": ")[0] in {"", *BERT_NAMES}
    }


@pytest.mark.parametrize("name", ["entropy.json", "entropy-0.json", "entropy-8", "a/8.json"])
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


def test_a_binary_file_and_a_missing_one_are_refused(bert: Path, tmp_path: Path) -> None:
    target = tmp_path / "entropy-8.json"
    with pytest.raises(TightropeError, match=r"gone: cannot be read"):
        import_cache(tmp_path / "gone", bert, target)
    (tmp_path / "plan").write_bytes(b"ftrt\xff\xfe\x00")
    with pytest.raises(TightropeError, match="plan: no text"):
        import_cache(tmp_path / "plan", bert, target)


def test_a_file_that_is_no_model_is_refused(text: Path, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"calibration\.cache: no readable ONNX file|not the"):
        import_cache(text, text, tmp_path / "entropy-8.json")


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


def test_an_edited_cache_is_not_exported(tiny: TinyModel, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(tiny.minmax.read_text().replace('"minmax"', '"entropy"'))
    with pytest.raises(ArtifactError, match=r"a\.json: its content is not what was written"):
        export_cache(tmp_path / "a.json", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_calibration_that_failed_is_not_exported(tmp_path: Path) -> None:
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


def test_the_command_line_replaces_a_file_only_by_force(
    repository: Path, tiny: TinyModel, bert: Path, text: Path, tmp_path: Path
) -> None:
    target = tmp_path / "entropy-8.json"
    for words in (("export", tiny.minmax, tmp_path / "out"), ("import", text, bert, target)):
        words[-1].write_text("mine")
        done = command_line(repository, *words)
        expected = f"error: {words[-1]}: exists; take another path, or --force to replace it\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
        assert words[-1].read_text() == "mine"
        assert command_line(repository, *words, "--force").returncode == 0
        assert words[-1].read_text() != "mine"


def test_the_command_line_says_an_error_in_one_line(
    repository: Path, bert: Path, text: Path, tmp_path: Path
) -> None:
    text.write_text(TEXT + "broken\n")
    target = tmp_path / "entropy-8.json"
    done = command_line(repository, "import", text, bert, target)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {text}: line 7: not 'tensor: 8 hex digits' but 'broken'")
    assert done.stderr.count("\n") == 1
    assert not target.exists()
    done = command_line(repository, "export", tmp_path / "gone.json", tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    folder = command_line(repository, "import", text, bert, tmp_path / "out", "--force")
    assert folder.returncode == 1


def test_a_folder_is_no_target(tiny: TinyModel, tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match="a folder; give the path of a file"):
        export_cache(tiny.minmax, tmp_path, force=True)

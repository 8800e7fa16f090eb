"""The model repository for Triton, against the schema of its client and the real measurements."""

from typing import Any

import pytest
from msgspec.structs import replace
from tightrope.bundle.triton import BACKENDS, triton_files
from tightrope.decide.result import Streams
from tightrope.errors import TightropeError
from tightrope.signature import of_images
from triton_engines import EXAMPLE, LABELS, MODEL, TEMPLATES, engine, point, result, row, throughput
from triton_schema import parameters_of, parsed, schema

ONNX, ON_GPU = "cpu-onnxruntime-fp32", "cuda-onnxruntime-fp32"


def files_of(variant: str, **changes: Any) -> dict[str, str]:
    """The text files for a variant with real results; `changes` are arguments of triton_files."""
    whole = {
        **{"model": MODEL, "engine": engine(variant), "labels": LABELS},
        **{"result": result(variant), "throughput": [], "traffic": [], "templates": TEMPLATES},
    }
    return triton_files(**{**whole, **changes})


def config_of(variant: str, **changes: Any) -> Any:
    return parsed(files_of(variant, **changes)[f"{MODEL}/config.pbtxt"])


def type_of(tensor: Any) -> str:
    return schema().DataType.Name(tensor.data_type)


@pytest.mark.parametrize(
    ("variant", "backend", "platform", "kind", "placed"),
    [
        (ONNX, "onnxruntime", "", "KIND_CPU", ["model.onnx"]),
        ("cpu-openvino-bf16", "openvino", "", "KIND_CPU", ["model.bin", "model.xml"]),
        ("cuda-torchscript-fp32", "pytorch", "pytorch_libtorch", "KIND_GPU", ["model.pt"]),
        ("cuda-tensorrt-fp16", "tensorrt", "tensorrt_plan", "KIND_GPU", ["model.plan"]),
    ],
)
def test_the_configuration_is_that_of_the_engine(variant, backend, platform, kind, placed) -> None:
    files = files_of(variant)
    config = parsed(files[f"{MODEL}/config.pbtxt"])
    assert (config.backend, config.platform) == (backend, platform)
    (group,) = config.instance_group
    assert schema().ModelInstanceGroup.Kind.Name(group.kind) == kind
    assert not config.default_model_filename
    assert sorted(BACKENDS[variant.split("-")[1]].files) == placed
    batch = [-1] if "openvino" in variant else []
    found = [(one.name, type_of(one), list(one.dims)) for one in config.input]
    names = ("input_ids", "attention_mask")
    assert found == [(name, "TYPE_INT64", [*batch, -1]) for name in names]
    (output,) = config.output
    logits = ("logits", "TYPE_FP32", [*batch, 5], "labels.txt")
    assert (output.name, type_of(output), list(output.dims), output.label_filename) == logits
    assert files[f"{MODEL}/labels.txt"].splitlines() == LABELS
    assert config.name == MODEL


def test_images_have_the_size_of_their_model_and_any_name_of_an_input_is_read_back() -> None:
    """That the files have such inputs, the tests of engines show."""
    images = {**engine(ONNX), "inputs": of_images(8, 12).facts(), "max_sequence": None}
    measured = result(ONNX, latency=[row(1, 0.004, sizes={"height": 8, "width": 12})])
    (one,) = config_of(ONNX, engine=images, result=measured).input
    assert (one.name, type_of(one), list(one.dims)) == ("pixel_values", "TYPE_FP32", [3, 8, 12])
    for text in ('a"b', "a\\b", "a\nb\t\x00", "é€😀", "", "# no comment", "\x7f9"):
        named = {**engine(ONNX), "inputs": [[text, "int64", ["batch", "sequence"]]]}
        assert [one.name for one in config_of(ONNX, engine=named).input] == [text]


POINTS = [point(1, 2, 1, 0.010), point(2, 1, 1, 0.016), point(2, 1, 4, 0.050)]


@pytest.mark.parametrize(
    ("bound", "preferred", "delay_us"),
    [
        # of the same two instances at batch 1, a tenth of a call
        ({}, 4, 1600),
        ({"bound_s": 0.0245, "within": 1}, 1, 0),
        # what the bound on p99 leaves of it
        ({"bound_s": 0.0755, "within": 2}, 4, 500),
        ({"bound_s": 0.07, "within": 2}, 4, 0),
    ],
)
def test_instances_threads_batch_and_delay_of_the_best_throughput(bound, preferred, delay_us):
    files = files_of(ONNX, throughput=[throughput(POINTS, ONNX, **bound)])
    config = parsed(files[f"{MODEL}/config.pbtxt"])
    assert config.instance_group[0].count == 2
    assert parameters_of(config)["intra_op_thread_count"] == "1"
    batching = config.dynamic_batching
    assert list(batching.preferred_batch_size) == [preferred]
    assert batching.max_queue_delay_microseconds == pytest.approx(delay_us, abs=1)
    # the largest batch of all measurements
    assert config.max_batch_size == 16
    assert ("within the bound on p99" in files["README.md"]) == bool(bound)


TEXT = {"sequence": 64}
PADDED = row(8, 0.02, sizes={**TEXT, "tokens": 16})
ROW, ROW_OF_8 = (row(batch, seconds, sizes=TEXT) for batch, seconds in ((1, 0.01), (8, 0.02)))
NO_FOLDERS = ("", "..", "a/b", "-rf", "a b", "a\n", "x" * 101, "README.md")
TENSORRT = engine("cuda-onnxruntime-fp16", provider="tensorrt")
FROM_PYTORCH = engine("cpu-openvino-fp32", route="pytorch")
BUILT_FOR_8 = {"buckets": {"batch": [1, 8], "sequence": [64]}, "graphs": True}


def test_batches_and_delay_are_what_the_engine_is_built_for() -> None:
    for variant, options, calls, expected in (
        # said, for Triton would else make batches of 8
        (ONNX, {}, {1: 0.01, 8: 0.1}, (8, 1, 0)),
        (ONNX, {}, {16: 0.16}, (16, 16, 1000)),
        ("cuda-onnxruntime-fp32", BUILT_FOR_8, {1: 0.01, 8: 0.04, 32: 0.1}, (8, 8, 1000)),
        # measured, and less than the 16 of its profiles
        ("cuda-tensorrt-fp16", {}, {1: 0.01, 8: 0.04, 32: 0.1}, (8, 8, 1000)),
    ):
        rows = [row(batch, seconds, sizes=TEXT) for batch, seconds in calls.items()]
        measured = result(variant, latency=rows)
        config = config_of(variant, engine=engine(variant, **options), result=measured)
        batching = config.dynamic_batching
        (preferred,) = batching.preferred_batch_size
        found = (config.max_batch_size, preferred, batching.max_queue_delay_microseconds)
        assert found == expected


def test_sessions_have_the_settings_that_were_timed_and_torchscript_its_logits() -> None:
    expected = {"intra_op_thread_count": "2", "inter_op_thread_count": "1", "execution_mode": "0"}
    expected |= {"enable_mem_arena": "1", "enable_mem_pattern": "1"}
    config = config_of(ONNX)
    assert parameters_of(config) == expected
    assert not config.HasField("optimization")
    config = config_of(ONNX, engine=engine(ONNX, optimization="basic", arena=False))
    assert config.optimization.graph.level == -1
    assert parameters_of(config)["enable_mem_arena"] == "0"
    config = config_of("cuda-onnxruntime-fp32")
    (cuda,) = config.optimization.execution_accelerators.gpu_execution_accelerator
    assert (cuda.name, dict(cuda.parameters)) == ("cuda", {"use_tf32": "0"})
    # TorchScript in fp16 has logits in fp16 and no classes
    files = files_of("cuda-torchscript-fp16")
    config = parsed(files[f"{MODEL}/config.pbtxt"])
    assert type_of(config.output[0]) == "TYPE_FP16"
    threads = {"INTRA_OP_THREAD_COUNT": "2", "INTER_OP_THREAD_COUNT": "1"}
    assert parameters_of(config) == threads
    assert "class_count" not in files["README.md"]


@pytest.mark.parametrize(
    ("variant", "hint"),
    [
        ("cpu-openvino-bf16", "YES"),
        ("cpu-openvino-int8-bf16-nncf-512", "YES"),
        ("cpu-openvino-fp32", None),
        ("cpu-openvino-int8-nncf-512", None),
    ],
)
def test_openvino_has_a_stream_per_instance_and_batches_of_requests_only(variant, hint) -> None:
    points = [point(2, 1, 4, 0.050), point(1, 2, 1, 0.020)]
    files = files_of(variant, throughput=[throughput(points, variant)])
    config = parsed(files[f"{MODEL}/config.pbtxt"])
    found = parameters_of(config)
    assert (found["NUM_STREAMS"], found["INFERENCE_NUM_THREADS"]) == ("2", "2")
    assert found.get("HINT_BF16") == hint
    assert config.max_batch_size == 0 and not config.HasField("dynamic_batching")
    # what no parameter prevents is said
    assert ("it computes in bf16" in files["README.md"]) == (hint is None)


@pytest.mark.parametrize("precision", ["fp32", "int8-nncf-512"])
def test_openvino_is_refused_where_it_would_compute_in_bf16_unasked(precision: str) -> None:
    variant = f"cpu-openvino-{precision}"
    assert files_of(variant, isa=["avx2", "avx512_vnni"]) == files_of(variant)
    with pytest.raises(TightropeError, match="processor with amx_bf16") as error:
        files_of(variant, isa=["avx2", "amx_bf16"])
    assert "\n" not in str(error.value)
    assert files_of("cpu-openvino-bf16", isa=["amx_bf16"]) == files_of("cpu-openvino-bf16")
    assert files_of(ONNX, isa=["amx_bf16"]) == files_of(ONNX)


def test_a_plan_has_all_its_profiles_and_a_graph_per_measured_shape() -> None:
    config = config_of("cuda-tensorrt-fp16")
    assert list(config.instance_group[0].profile) == ["0", "1"]
    assert not config.parameters
    cuda = config.optimization.cuda
    assert cuda.graphs
    shapes = [(one.batch_size, list(one.input["input_ids"].dim)) for one in cuda.graph_spec]
    assert shapes == [(1, [64]), (1, [128]), (16, [128]), (1, [512])]
    names = {name for one in cuda.graph_spec for name in one.input}
    assert names == {"input_ids", "attention_mask"}
    without = engine("cuda-tensorrt-fp16", graphs=False, version_compatible=True)
    files = files_of("cuda-tensorrt-fp16", engine=without)
    assert not parsed(files[f"{MODEL}/config.pbtxt"]).HasField("optimization")
    assert "--backend-config=tensorrt,version-compatible=true" in files["README.md"]


def test_each_label_is_one_line_whatever_is_in_it() -> None:
    labels = ['a "quoted"', "two\nlines", "back\\slash", "wörld", "", "\u2028", "half \ud800"]
    files = files_of(ONNX, labels=labels)
    text = files[f"{MODEL}/labels.txt"]
    assert text.encode().count(b"\n") == len(labels)
    lines = ['a "quoted"', "two\\nlines", "back\\slash", "wörld", "", "\\u2028", "half \\ud800"]
    assert text.split("\n")[:-1] == lines
    assert list(parsed(files[f"{MODEL}/config.pbtxt"]).output[0].dims) == [7]


def test_which_measurements_count() -> None:
    for changes, expected in (
        # of other variants, hosts, models, and of what failed
        ({"throughput": [throughput(POINTS, "cpu-onnxruntime-int8-dynamic")]}, (16, 1)),
        ({"throughput": [throughput(POINTS, ONNX, host="another")]}, (16, 1)),
        ({"throughput": [throughput(POINTS, ONNX, model="another")]}, (16, 1)),
        ({"throughput": [throughput(POINTS, ONNX, status="failed")]}, (16, 1)),
        # batches under traffic count
        ({"traffic": EXAMPLE.studies["traffic"]}, (32, 1)),
        # disturbed and padded rows do not
        ({"result": result(ONNX, latency=[ROW, replace(ROW_OF_8, throughput_per_s=None)])}, (1, 1)),
        ({"result": result(ONNX, latency=[ROW, PADDED])}, (1, 1)),
    ):
        config = config_of(ONNX, **changes)
        assert (config.max_batch_size, config.instance_group[0].count) == expected
    # instances are the best number of streams
    streams = result(ON_GPU, latency=[ROW, replace(ROW_OF_8, streams=Streams([], 3))])
    config = config_of(ON_GPU, result=streams)
    assert (config.max_batch_size, config.instance_group[0].count) == (8, 3)


@pytest.mark.parametrize(
    ("variant", "changes", "reason"),
    [
        ("cpu-pytorch-fp32", {}, "no backend of Triton loads its files"),
        ("cpu-inductor-fp32", {}, "takes no batches"),
        ("cpu-tvm-fp32", {}, "no backend for TVM"),
        ("cpu-torchscript-bf16", {}, "its logits are bf16"),
        *((ONNX, {"model": name}, "name the model") for name in NO_FOLDERS),
        (ONNX, {"engine": {**engine(ONNX), "files": {}}}, "lists no model.onnx"),
        ("cuda-onnxruntime-fp16", {"engine": TENSORRT}, "would build another TensorRT engine"),
        ("cpu-openvino-fp32", {"engine": FROM_PYTORCH}, "has no name, .*; convert from ONNX"),
        (ONNX, {"result": result(ONNX, status="failed", reason="too slow")}, "too slow"),
        (ONNX, {"result": result(ONNX, latency=[])}, "no undisturbed latency"),
        (ONNX, {"labels": []}, "no labels"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(variant: str, changes: Any, reason: str):
    with pytest.raises(TightropeError, match=reason) as error:
        files_of(variant, **changes)
    line = str(error.value)
    assert "\n" not in line
    assert "model" in changes or line.startswith(f"{MODEL} {variant}: ")
    if not changes:
        assert "onnxruntime, openvino, tensorrt, torchscript" in line and "docs/bundle.md" in line


def test_the_readme_says_from_which_measurement_each_setting_of_the_latency_is() -> None:
    files = files_of(ONNX)
    config, readme = parsed(files[f"{MODEL}/config.pbtxt"]), files["README.md"]
    assert config.dynamic_batching.max_queue_delay_microseconds == 1372
    assert "| `max_batch_size` | 16 | the largest measured batch |" in readme
    assert "98.69 samples per second, the most of the batches 1, 16" in readme
    assert "| `max_queue_delay_microseconds` | 1372 | a tenth of the 13.73 ms" in readme
    assert "`latency` of summary.json at 128 tokens" in readme
    assert "onnxruntime reads what 1.31.1 wrote" in readme
    assert "**Not run:**" in readme
    (program,) = readme.split("```python\n")[1:]
    compile(program.partition("```")[0], "README.md", "exec")

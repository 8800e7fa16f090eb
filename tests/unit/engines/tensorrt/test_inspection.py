import json
from typing import Any

import pytest
from polygraphy.datatype import DataType
from polygraphy.tools.inspect.subtool.model.extractors import _trt as polygraphy
from tightrope.engines.tensorrt_inspection import PRODUCTS, executed, timed_layers, weakest, word
from tightrope.errors import WorkFailed
from tightrope.runtimes.executed import Executed, is_product

Layer = dict[str, Any]


def layer(kind: str, inputs: list[str], outputs: list[str], kernel: str = "", **more: Any) -> Layer:
    """A layer with detailed verbosity; types of its tensors as `Format/Datatype`."""
    tensors = {"Inputs": [*map(tensor, inputs)], "Outputs": [*map(tensor, outputs)]}
    named = {"Name": "some operators of the model", "LayerType": kind, "TacticName": kernel}
    return {**named, **tensors, **more}


def tensor(text: str) -> dict[str, Any]:
    return {"Name": "t", "Dimensions": [1, 40, 256], "Format/Datatype": text}


def information(*layers: Any) -> str:
    return json.dumps({"Layers": list(layers), "Bindings": ["input_ids", "logits"]})


# Layers of a BERT in fp16 by Myelin, TensorRT 10: github.com/NVIDIA/TensorRT/issues/4397
GEMM = layer("gemm", ["Half"], ["Half"], "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize32x32x64")
FUSED = layer("fusion", ["Half"], ["Half"], "sm80_xmma_gemm_f16f16_f16f16_f16_nn_by_fusion_tactic")
ATTENTION = layer("kgen", ["Half"] * 4, ["Half"], "_gemm_mha_v2_0x957a2fe2")
NORM = layer("kgen", ["Half", "Half"], ["Half"], "__myl_AddCastMeanSubMulMeanAddSqrtDivMulCast_0x3")

# the same of models with Q/DQ; kernels as in the fp16 ones, their operands i8 as in the
# convolutions of trt-engine-explorer (tests/inputs/mobilenet.qat.onnx.engine.graph.json)
GEMM_INT8 = layer("gemm", ["Int8"], ["Half"], "sm80_xmma_gemm_i8i8_i8i32_f32_tn_n_tilesize128x64")
FUSED_INT8 = layer("fusion", ["Int8"], ["Int8"], "__myl_FcAddMulErf_0x12ab_tensorop256x128")
ATTENTION_INT8 = layer("kgen", ["Int8", "Int8", "Half", "Int8"], ["Int8"], "_gemm_mha_v2_0xa1")

# TensorRT 8: trt-engine-explorer, the same file
CONVOLUTION_INT8 = layer(
    "CaskConvolution",
    ["Thirty-two wide channel vectorized row major Int8 format", "Row major linear FP32"],
    ["Channel major FP16 format where channel % 8 == 0"],
    "turing_fp16_i8816cudnn_int8_128x128_ldg16_relu_small_nt_v1",
    ParameterType="Convolution",
    Weights={"Type": "Int8", "Count": 3456},
)
REFORMAT = layer("Reformat", ["Row major linear FP32"], ["Row major Int8 format"], Origin="QDQ")
NO_OP = layer("NoOp", ["Half"], ["Half"])
FP16_GEMM: Executed = {"gemm": {"fp16": 1}}
INT8_ROWS = ["Row major Int8 format"]


@pytest.mark.parametrize(
    ("layers", "counted"),
    [
        (
            [GEMM, FUSED, ATTENTION, NORM, NORM],
            {"attention": {"fp16": 1}, "gemm": {"fp16": 2}, "kgen": {"fp16": 2}},
        ),
        # products of int8 are those whose data are int8
        (
            [GEMM_INT8, FUSED_INT8, ATTENTION_INT8, GEMM, NORM],
            {"attention": {"int8": 1}, "gemm": {"fp16": 1, "int8": 2}, "kgen": {"fp16": 1}},
        ),
        ([CONVOLUTION_INT8, REFORMAT], {"convolution": {"int8": 1}, "Reformat": {"fp32": 1}}),
        # a kernel or weights that make floats of int8
        ([layer("gemm", INT8_ROWS, ["Half"], "sm80_xmma_gemm_f16f16_f16f16_f16_nn")], FP16_GEMM),
        (
            [layer("CaskConvolution", INT8_ROWS, ["Half"], Weights={"Type": "Float"})],
            {"convolution": {"fp32": 1}},
        ),
        # what computes nothing
        ([*(layer(kind, [], []) for kind in ("signal", "Constant")), NO_OP, GEMM], FP16_GEMM),
        # the numbers that a layer reads or writes
        ([layer("kgen", ["Bool", "Half"], ["Half"], "__myl_Sel_0x1")], {"kgen": {"fp16": 1}}),
        ([layer("kgen", ["Int64"], ["Float"], "__myl_CastMul_0x2")], {"kgen": {"fp32": 1}}),
        ([layer("kgen", ["Int64"], ["Int64"], "__myl_Mul_0x3")], {"kgen": {"Int64": 1}}),
        ([layer("shape_call", [], [])], {"shape_call": {"unknown": 1}}),
        # a type apart from its format
        ([layer("gemm", [], [], Inputs=[{"Datatype": "BFloat16"}])], {"gemm": {"bf16": 1}}),
    ],
)
def test_layers_are_counted_by_class_and_type(layers: list[Layer], counted: Executed) -> None:
    assert executed(information(*layers)) == counted


@pytest.mark.parametrize(
    ("kind", "kernel", "found"),
    [
        # TensorRT 8.2: github.com/pytorch/pytorch/pull/66683
        ("CaskGemmMatrixMultiply", "", "gemm"),
        # fused from the front: names of Myelin begin with Fc for such a product
        ("kgen", "__myl_CasMulFc_0x77", "gemm"),
        # one row of queries
        ("kgen", "_gemv_mha_v1_0x77", "attention"),
        ("fmha", "", "attention"),
        # convolutions by a product, TensorRT 8 and 10
        ("CaskConvActPool", "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32", "convolution"),
        # neither a product nor a convolution: Concat, Softmax, numbers that are converted
        ("kgen", "__myl_CastMulCast_0x77", "kgen"),
        ("kgen", "__myl_MaxSubExpSumDivMul_0x77", "kgen"),
        # all of it in one layer, TensorRT 8.6: nobody can tell what is in it
        ("Myelin", "", "Myelin"),
    ],
)
def test_a_layers_type_or_kernel_says_its_class(kind: str, kernel: str, found: str) -> None:
    assert executed(information(layer(kind, ["Half"], ["Half"], kernel))) == {found: {"fp16": 1}}
    assert is_product(found) is (found in PRODUCTS)


HIDDEN = "N/A due to dynamic shapes"


@pytest.mark.parametrize(
    ("texts", "kernel", "name"),
    [
        (["Float", "Row major linear FP32", "FLOAT32"], "", "fp32"),
        (["BFloat16", "Row major linear BFloat16 format"], "", "bf16"),
        (["Half", "Float16"], "", "fp16"),
        (["FP8", "FP8E4M3", "E4M3", "Float8", "fp8", "Float8E4M3"], "", "fp8"),
        # not ours: kept as it is
        (["Row major linear UInt8 format"], "", "Row major linear UInt8 format"),
        # a kernel that names tf32 is told from fp32
        (["Float"], "sm80_xmma_gemm_f32f32_tf32f32_f32_nn", "tf32"),
        (["Float"], "ampere_sgemm_32x32_sliced1x4_nn", "fp32"),
        (["FP8"], "cutlass3x_sm100_tensorop_s128x128x32gemm_f8_f8_f32_f16_f16", "fp8"),
        # an engine of dynamic shapes, inspected without an execution context
        ([HIDDEN], "sm80_xmma_gemm_i8i8_i8i32_f32_tn_n", "int8"),
        ([HIDDEN], "0x0", HIDDEN),
    ],
)
def test_types_are_in_our_words_or_kept(texts: list[str], kernel: str, name: str) -> None:
    for text in texts:
        found = executed(information(layer("gemm", [text], ["Half"], kernel)))
        assert found == {"gemm": {name: 1}}


OURS = {
    **{DataType.FLOAT32: "fp32", DataType.FLOAT16: "fp16", DataType.BFLOAT16: "bf16"},
    **{DataType.INT8: "int8", DataType.FLOAT8E4M3FN: "fp8"},
}


@pytest.mark.parametrize(("text", "kind"), polygraphy._TRT_DTYPE_MAP.items())
def test_types_are_spelt_as_in_polygraphys_reader_of_tensorrt_11(text: str, kind: Any) -> None:
    for spelt in (text, text.capitalize(), f"Row major linear {text} format"):
        assert word(spelt) == OURS.get(kind, spelt)


def test_the_layers_of_each_profile_are_told_apart_though_few_have_it_in_their_names() -> None:
    """As NVIDIA's cookbook (EngineInspector, TensorRT 10): Myelin's names have a part's number."""
    first = {
        **{"max_pool2d_1": REFORMAT, "node_linear_myl5_2": GEMM, "__myl_Fc_myl5_3": FUSED},
        **{"_gemm_mha_v2_myl5_4": ATTENTION, "__myl_Fc_myl7_0": GEMM},
    }
    second = {
        **{"max_pool2d_1 [profile 1]": REFORMAT, "node_linear [profile 1]_myl11_2": GEMM_INT8},
        **{"__myl_Fc_myl11_3": FUSED_INT8, "_gemm_mha_v2_myl11_4": ATTENTION_INT8},
        # a part that only what it writes tells from those of the first profile
        "__mye260_0_myl13_0": GEMM_INT8,
        "__myl_Cast_myl13_1": {**NORM, "Outputs": [{**tensor("Half"), "Name": "z [profile 1]"}]},
        # as trt-engine-explorer has them: each layer with the profile behind its name
        "__myl_Fc_myl5_7 [profile 1]": GEMM_INT8,
    }
    layers = [{**one, "Name": name} for name, one in (first | second).items()]
    document, alone = information(*layers), information(*layers[: len(first)])
    found = {"attention": {"fp16": 1}, "gemm": {"fp16": 3}, "Reformat": {"fp32": 1}}
    assert executed(document) == found
    assert executed(document, 1) == {
        **{"attention": {"int8": 1}, "gemm": {"int8": 4}},
        **{"Reformat": {"fp32": 1}, "kgen": {"fp16": 1}},
    }
    assert executed(document, 2) == {}
    assert weakest(information(*layers[len(first) :]), "int8-fp16", 3) == executed(document, 1)
    with pytest.raises(WorkFailed, match="ran in fp16: no matrix product ran in int8"):
        weakest(document, "int8-fp16", 2)
    # without the name of any profile all layers are those that were asked for
    assert executed(alone) == executed(alone, 1) == found
    # control characters between names, TensorRT 8.6: github.com/NVIDIA/TensorRT/issues/2779
    raw = information({**GEMM, "Metadata": "[ONNX Layer: a]|[ONNX Layer: b]"}).replace("|", "\x1f")
    assert executed(raw) == FP16_GEMM


@pytest.mark.parametrize(
    ("poor", "words"),
    [
        # LAYER_NAMES_ONLY: github.com/NVIDIA/TensorRT/issues/4020
        (information("Reformatting CopyNode for Input Tensor 0 to conv0"), "holds no details"),
        (information(), "holds no details"),
        (information(GEMM, "conv0"), r"holds no details .* ProfilingVerbosity\.DETAILED"),
        *((text, "no JSON with layers") for text in ("Name: a", "[]", "{}")),
    ],
)
def test_an_engine_without_details_fails_with_the_remedy(poor: str, words: str) -> None:
    with pytest.raises(WorkFailed, match=words):
        executed(poor)


def test_timed_layers_have_the_work_of_their_shapes() -> None:
    named = {"a": GEMM_INT8, "b": ATTENTION, "c": NORM}
    document = information(*({**one, "Name": name} for name, one in named.items()))
    found = list(timed_layers(document, [("a", 3.0), ("b", 2.0), ("c", 1.0), ("new", 0.5)]))
    assert [(one.name, one.group, one.type, one.seconds) for one in found] == [
        *(("a", "products", "int8", 3.0), ("b", "attention", "fp16", 2.0)),
        *(("c", "fused kernels", "fp16", 1.0), ("new", "fused kernels", "unknown", 0.5)),
    ]
    size = 40 * 256
    assert (found[0].operations, found[2].bytes) == (2.0 * size * 256, 3 * 2.0 * size)
    assert (found[3].operations, found[3].bytes) == (0.0, 0.0)
    dynamic = {**GEMM, "Name": "d", "Inputs": [{**tensor("Half"), "Dimensions": [-1, 40, 256]}]}
    (found,) = timed_layers(information(dynamic), [("d", 1.0)])
    assert (found.type, found.operations) == ("fp16", 0.0)

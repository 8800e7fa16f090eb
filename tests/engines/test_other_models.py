"""Models that no checkpoint of transformers is: engines answer as the original does in PyTorch.

Sizes that config.json has no field for, a swapped activation, an ONNX file of another exporter, and
an ONNX file that onnxruntime.quantization has quantized.
"""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from checkpoints import make_checkpoint
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import supervised
from tightrope.model.pruning import Changes
from tightrope.onnx.file import load_onnx
from tightrope.signature import IMAGE, TEXT
from tightrope.variants import parse
from tiny_images import BUCKETS, SIDE
from tiny_model import (
    LIMITS,
    LONGEST,
    OPTIONS,
    SAMPLES,
    TinyModel,
    answers_of,
    build_variant,
    difference,
    make_onnx_files,
    model_files,
    skip_where_emulated,
)

FP32, INT8 = "cpu-onnxruntime-fp32", f"cpu-onnxruntime-int8-minmax-{SAMPLES}"
OPENVINO, TVM = "cpu-openvino-fp32", "cpu-tvm-fp32"
PYTORCH, TORCHSCRIPT = "cpu-pytorch-fp32", "cpu-torchscript-fp32"
GIVEN_ORT, GIVEN_OPENVINO = "cpu-onnxruntime-given", "cpu-openvino-given"
# The norm of the difference of a batch's logits over the norm of its logits.
CLOSE, NEAR, INTEGER, ROUNDED = 1e-5, 1e-4, 0.05, 0.1
# of a ConvNeXt with 64 and 128 neurons, and of a BERT with two heads
PRUNED: dict[str, dict[str, int]] = {"narrow": {"intermediate": 48}, "few heads": {"heads": 1}}
# what a model is, the engine, its options, the tolerance; what reads the same file as another and
# answers alike for the tiny models, in test_parity.py, is not asked again
CASES: list[tuple[str, str, dict[str, Any], float]] = [
    ("narrow", PYTORCH, {}, CLOSE),
    ("narrow", FP32, {}, NEAR),
    ("narrow", INT8, {}, ROUNDED),
    ("few heads", PYTORCH, {}, CLOSE),
    ("few heads", FP32, {}, NEAR),
    ("few heads", FP32, {"attention_operator": True}, NEAR),
    ("few heads", INT8, {}, ROUNDED),
    # those that compile C++ are judged in tests/unit/model/test_fast_swish.py
    ("fast swish", PYTORCH, {}, NEAR),
    ("fast swish", TORCHSCRIPT, {}, NEAR),
    ("fast swish", FP32, {}, NEAR),
    ("fast swish", OPENVINO, {"route": "pytorch"}, NEAR),
    ("fast swish", TVM, {}, NEAR),
    ("of another exporter", FP32, {}, NEAR),
    ("of another exporter", INT8, {}, ROUNDED),
    ("of another exporter", OPENVINO, {}, NEAR),
    # beside the quantized file itself, in float but for what activations are rounded to; its Q/DQ:
    # tests/unit/onnx/test_float_model.py
    ("quantized", GIVEN_ORT, {}, INTEGER / 5),
    ("quantized", GIVEN_OPENVINO, {}, INTEGER),
    ("quantized", FP32, {}, INTEGER),
]
IMAGES = ("narrow", "of another exporter")


class Made(NamedTuple):
    """The files of a model, requests, and the logits that its engines should give."""

    model: TinyModel
    batches: list[Arrays]
    expected: list[np.ndarray]
    # of what the model was made from
    of_parent: list[np.ndarray]


def export_otherwise(parent: TinyModel, folder: Path) -> str:
    """As the exporter of TorchScript makes it: another input name, and every size but 3 free."""
    import torch
    from tightrope.model.module import logits_module

    folder.mkdir()
    torch.onnx.export(
        logits_module(parent.checkpoint, torch.float32),
        (torch.zeros(2, 3, SIDE, SIDE),),
        str(folder / "convnext.onnx"),
        input_names=["image"],
        output_names=["scores"],
        dynamic_axes={"image": {0: "n", 2: "h", 3: "w"}, "scores": {0: "n"}},
        opset_version=17,
        dynamo=False,
    )
    shutil.copy(parent.checkpoint.parent / "preprocessor_config.json", folder)
    return f"onnx:{folder}/convnext.onnx"


def quantize_otherwise(parent: TinyModel, folder: Path) -> str:
    """As onnxruntime.quantization makes it, of the encoded calibration texts in padded pairs."""
    import onnx
    from given_files import QuantType, quantized_by_onnxruntime
    from tightrope.machine.host import describe_host, saturates

    encode = load_encoder(parent.checkpoint, max_sequence=LONGEST)
    rows = list(encode(read_split(parent.split("calibration"))))
    made = quantized_by_onnxruntime(
        onnx.load(parent.simplified),
        [stack(rows[n : n + 2]) for n in range(0, len(rows), 2)],
        **{"activation_type": QuantType.QUInt8, "per_channel": True},
        reduce_range=saturates(describe_host()),
        # sums with an attention mask have the range of its large negative number
        op_types_to_quantize=["Gather", "Gemm", "MatMul"],
    )
    folder.mkdir()
    onnx.save(made, folder / "quantized.onnx")
    shutil.copy(parent.checkpoint.parent / "tokenizer.json", folder)
    return f"onnx:{folder}/quantized.onnx"


def make(folder: Path, kind: str, parent: TinyModel) -> Made:
    """Run in a child: the chain of rules from the model to its files, and logits."""
    import torch
    from tightrope.model.activations import FastSwish
    from tightrope.model.module import load_module
    from tightrope.onnx.session import run_onnx
    from transformers import BertForSequenceClassification

    torch.set_num_threads(1)
    model = model_files(folder)._replace(data=parent.data)
    task, longest = (IMAGE, 1) if kind in IMAGES else (TEXT, LONGEST)
    source = f"path:{parent.checkpoint.parent}"
    derived = partial(make_checkpoint, folder, data=model.split("train"), task=task)
    if kind in PRUNED:
        derived(source, changes=Changes(prune=PRUNED[kind]))
    elif kind == "fast swish":
        derived(source, changes=Changes("fast_swish"))
    elif kind == "of another exporter":
        derived(export_otherwise(parent, folder / "own"), inputs={"pixel_values": "image"})
    else:
        place = quantize_otherwise(parent, folder / "own")
        with pytest.raises(TightropeError, match="is quantized already"):
            derived(place)
        names = ("input_ids", "attention_mask", "token_type_ids")
        derived(place, inputs={name: name for name in names}, quantized=True)
    quantized = any(name == INT8 for one, name, *_ in CASES if one == kind)
    make_onnx_files(model, longest, ("minmax",) * quantized, ("u8s8",) * quantized)

    rows = load_encoder(model.checkpoint, max_sequence=longest)(
        read_split(model.split("evaluation"))[:4]
    )
    batches = [stack(rows[:1]), stack(rows[1:4])]
    tensors = [{name: torch.from_numpy(one) for name, one in batch.items()} for batch in batches]

    def answered(module: Any) -> list[np.ndarray]:
        with torch.inference_mode():
            return [module(**one).logits.numpy() for one in tensors]

    of_parent = answered(load_module(parent.checkpoint.parent, torch.float32, attention="eager"))
    expected = of_parent
    if kind in PRUNED:
        folder = model.checkpoint.parent
        expected = answered(load_module(folder, torch.float32, attention="eager"))
    elif kind == "fast swish":
        module = BertForSequenceClassification.from_pretrained(model.checkpoint.parent).eval()
        for layer in module.bert.encoder.layer:
            layer.intermediate.intermediate_act_fn = FastSwish()
        expected = answered(module)
    elif kind == "quantized":
        expected = run_onnx(load_onnx(model.onnx), batches, threads=1)
    return Made(model, batches, expected, of_parent)


@pytest.fixture(scope="module")
def made(
    tiny: TinyModel, tiny_images: TinyModel, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Made]:
    """From what a model is to its files, each made once."""
    known: dict[str, Made] = {}

    def of(kind: str) -> Made:
        if kind not in known:
            parent = tiny_images if kind in IMAGES else tiny
            folder = tmp_path_factory.mktemp(kind.replace(" ", "-"))
            known[kind] = supervised(make, folder, kind, parent, limits=LIMITS)
        return known[kind]

    return of


def largest(found: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """The largest difference of the batches."""
    return max(difference(*pair) for pair in zip(found, expected, strict=True))


def build(kind: str, name: str, model: TinyModel, target: Path, changes: dict[str, Any]) -> Any:
    """Build the variant of the model as its rule does; return its manifest."""
    variant = parse(name)
    options = {**OPTIONS.get(variant.engine, {}), **changes}
    if "buckets" in options:
        # one of texts: TVM compiles four seconds for each
        options["buckets"] = BUCKETS if kind in IMAGES else {"batch": [4], "sequence": [LONGEST]}
    facts: dict[str, Any] = {"options": options}
    if options.get("route") == "pytorch":
        facts["source"] = model.checkpoint
    elif variant.precision == "given":
        facts["source"] = model.onnx
    engine = json.loads(build_variant(model, variant, target, **facts).read_text())
    skip_where_emulated(variant, engine)
    assert engine["status"] == "ok", engine["reason"]
    return engine


@pytest.mark.parametrize(("kind", "name", "changes", "tolerance"), CASES)
def test_engines_answer_as_the_original(kind, name, changes, tolerance, made, tmp_path) -> None:
    model, batches, expected, _ = made(kind)
    target = tmp_path / "engine.json"
    engine = build(kind, name, model, target, changes)
    assert largest(answers_of(target, batches), expected) <= tolerance
    counts = engine["executed"]
    if kind in IMAGES:
        assert engine["inputs"] == [["pixel_values", "float32", ["batch", 3, SIDE, SIDE]]]
        assert name != INT8 or counts["QLinearConv"] == {"int8": 4}
    if name in (GIVEN_ORT, GIVEN_OPENVINO):
        assert sum(count.get("int8", 0) for count in counts.values()) >= 12


def test_a_swapped_activation_changes_the_answers_and_is_of_standard_operators(made) -> None:
    model, _, expected, of_parent = made("fast swish")
    assert largest(expected, of_parent) > 10 * NEAR
    before, after = (load_onnx(path) for path in (model.onnx, model.simplified))
    for one in (before, after):
        assert {node.domain for node in one.graph.node} == {""}
        assert {imported.domain for imported in one.opset_import} == {""}
        assert not one.functions
    # the feed-forward of the last layer is computed for the first token alone
    slices = [sum(node.op_type == "Slice" for node in one.graph.node) for one in (before, after)]
    assert slices[1] > slices[0]

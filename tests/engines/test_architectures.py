"""What becomes of the encoders of transformers: the exported graph, simplified, quantized."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from checkpoints import make_checkpoint
from splits import prepare_splits, split_of
from tightrope.engines.tensorrt_onnx import typed
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.jobs.child import supervised
from tightrope.onnx.file import load_onnx, save_onnx
from tightrope.onnx.session import TRIALS, run_onnx, shapes_seen
from tiny_model import LIMITS

SIZES = (
    "hidden_size=32&num_hidden_layers=2&num_attention_heads=2&intermediate_size=64"
    "&vocab_size=200&max_position_embeddings=80&initializer_range=0.2"
)
OF_DISTILBERT = (
    "dim=32&n_layers=2&n_heads=2&hidden_dim=64&vocab_size=200&max_position_embeddings=80"
    "&initializer_range=0.2"
)
ARCHITECTURES = {
    "bert": SIZES,
    "distilbert": OF_DISTILBERT,
    "roberta": SIZES,
    "electra": f"embedding_size=16&{SIZES}",
    "albert": f"embedding_size=16&{SIZES}",
    "mpnet": SIZES,
    # as in DeBERTa v3
    "deberta-v2": (
        "relative_attention=true&pos_att_type=[p2c,c2p]&position_biased_input=false&" + SIZES
    ),
}
# their attention is code of their own, which takes no other attention function
OWN_SCALE, OWN_MASK = "mpnet", "deberta-v2"
LAYERS = 2
SCHEMES = ("u8s8", "s8s8", "e4m3")
FOR_TENSORRT = {"s8s8": "int8-fp16", "e4m3": "fp8"}
SAMPLES = 8


class Files(NamedTuple):
    """The ONNX files of one architecture with random weights, and what was seen of them.

    ONNX Runtime starts a thread when it is imported, and a fork of a process with threads may wait
    for one for ever: so all of it runs in the child that makes the files.
    """

    name: str
    folder: Path
    # PyTorch's of `batch`
    logits: np.ndarray
    # of each file for `batch`, and of the simplified one for a text of padding alone
    answers: dict[str, np.ndarray]
    of_padding: np.ndarray
    # of the tensors of the simplified file in TRIALS
    shapes: dict[str, list[tuple[int, ...]]]
    # by scheme: lines about attention, or why none is quantized
    said: dict[str, list[str]]
    refused: dict[str, str]

    def model(self, name: str) -> onnx.ModelProto:
        return load_onnx(self.folder / f"{name}.onnx")


def batch() -> Arrays:
    """Three texts of 16 tokens, two of them padded."""
    ids = np.random.default_rng(0).integers(5, 200, (3, 16))
    mask = np.ones_like(ids)
    mask[1, 9:] = mask[2, 1:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def make(name: str, folder: Path) -> Files:
    """Run in a child: the chain up to the quantized files, and logits by hand."""
    import torch
    from tightrope.int8.calibrate import calibrate
    from tightrope.int8.quantize import quantize_onnx
    from tightrope.onnx.attention import with_attention_operators
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx
    from transformers import AutoModelForSequenceClassification

    source = f"scratch:{name}?{ARCHITECTURES[name]}"
    data, exported, simplified, cache = (
        folder / one for one in ("data/data.json", "exported.onnx", "simplified.onnx", "a.json")
    )
    sizes = {"train": None, "evaluation": 8}
    prepare_splits(data, source="random", columns={}, splits=sizes, pool=SAMPLES, seed=0)
    checkpoint = make_checkpoint(folder, source, split_of(data, "train"))
    export_onnx(checkpoint, exported, threads=1)
    simplify_onnx(exported, checkpoint, split_of(data, "timing"), simplified, threads=1)
    options: dict[str, Any] = {"samples": SAMPLES, "percentile": None, "max_sequence": 64}
    inputs = (simplified, split_of(data, "calibration"), checkpoint, cache)
    calibrate(*inputs, method="minmax", libraries={}, threads=1, **options)
    said: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    for scheme in SCHEMES:
        quantize_onnx(simplified, cache, folder / f"{scheme}.onnx", scheme=scheme)
    for scheme in FOR_TENSORRT:
        with redirect_stdout(io.StringIO()) as printed:
            target, repair = folder / f"attended-{scheme}.onnx", {"attention": True}
            try:
                quantize_onnx(simplified, cache, target, scheme=scheme, repair=repair)
            except TightropeError as error:
                refused[scheme] = str(error)
        said[scheme] = [one for one in printed.getvalue().splitlines() if "attention of" in one]
    for one in ("simplified", "s8s8"):
        model = with_attention_operators(load_onnx(folder / f"{one}.onnx"))
        save_onnx(model, folder / f"operators-{one}.onnx")

    def answered(path: Path, given: Arrays) -> np.ndarray:
        return run_onnx(load_onnx(path), [given], threads=1)[0]

    padding = batch()
    padding["attention_mask"][1] = 0
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint.parent).eval()
    with torch.inference_mode():
        given = {one: torch.from_numpy(array) for one, array in batch().items()}
        logits = model(**given).logits.numpy()
    return Files(
        name=name,
        folder=folder,
        logits=logits,
        answers={path.stem: answered(path, batch()) for path in folder.glob("*.onnx")},
        of_padding=answered(simplified, padding),
        shapes=shapes_seen(load_onnx(simplified)),
        said=said,
        refused=refused,
    )


@pytest.fixture(scope="module", params=ARCHITECTURES)
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Files:
    name: str = request.param
    return supervised(make, name, tmp_path_factory.mktemp(name), limits=LIMITS)


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def count(model: onnx.ModelProto, kind: str) -> int:
    return sum(node.op_type == kind for node in model.graph.node)


def test_logits_are_those_of_pytorch_and_of_padding_alone_they_are_numbers(files: Files) -> None:
    for name in ("exported", "simplified"):
        assert relative(files.answers[name], files.logits) < 1e-4
    assert np.isfinite(files.of_padding).all()
    others = files.of_padding[[0, 2]]
    np.testing.assert_allclose(others, files.logits[[0, 2]], rtol=1e-3, atol=1e-4)


def test_the_mask_is_a_row_per_text_and_nothing_scales_the_scores(files: Files) -> None:
    """Indexing and expanding a mask, and scaling each score, cost every runtime at each call."""
    model, shapes = files.model("simplified"), files.shapes
    assert count(model, "GatherND") == 0
    expanded = [(batch, 1, length, length) for batch, length in TRIALS]
    assert (expanded in shapes.values()) is (files.name == OWN_MASK)
    scores = [shapes[node.input[0]] for node in model.graph.node if node.op_type == "Softmax"]
    assert len(scores) == LAYERS
    scaled = [node for node in model.graph.node if node.op_type in ("Mul", "Div")]
    found = [node for node in scaled if shapes[node.output[0]] in scores]
    assert bool(found) is (files.name == OWN_SCALE)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_quantized_files_are_valid_and_answer_as_the_float_one(files: Files, scheme: str) -> None:
    model = files.model(scheme)
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    assert count(model, "QuantizeLinear") >= 4
    assert relative(files.answers[scheme], files.logits) < 0.3


def test_the_typed_files_for_tensorrt_are_valid(files: Files) -> None:
    types = {name: ("fp16", "bf16") for name in ("simplified", "operators-simplified")}
    types |= {name: (precision,) for name, precision in FOR_TENSORRT.items()}
    for name, precisions in types.items():
        for precision in precisions:
            onnx.checker.check_model(typed(files.model(name), precision), full_check=True)


@pytest.mark.parametrize(("name", "tolerance"), [("simplified", 1e-5), ("s8s8", 0.02)])
def test_attention_becomes_one_operator_where_its_form_is_known(files, name, tolerance) -> None:
    """Attention of MPNet and DeBERTa has a form of its own, and stays as it is."""
    model, own = files.model(f"operators-{name}"), files.name in (OWN_SCALE, OWN_MASK)
    onnx.checker.check_model(model, full_check=True)
    assert count(model, "Attention") == (0 if own else LAYERS)
    # heads are apart, as PyTorch exports them: TensorRT's parser is not known to take joined ones
    found = [node for node in model.graph.node if node.op_type == "Attention"]
    assert not [one for node in found for one in node.attribute if one.name == "q_num_heads"]
    assert count(model, "Softmax") == (LAYERS if own else 0)
    assert relative(files.answers[f"operators-{name}"], files.answers[name]) < tolerance


@pytest.mark.parametrize(("scheme", "precision"), FOR_TENSORRT.items())
def test_attention_is_quantized_or_the_reason_is_said(files, scheme, precision) -> None:
    """The mask of DeBERTa is a Where, with which TensorRT's pattern of attention does not fit."""
    if files.name == OWN_MASK:
        assert re.search(r"no attention .* come from Where\)", files.refused[scheme])
        return
    assert not files.refused
    said = "attention of node_softmax_1 stays in float: one query per example"
    assert files.said[scheme] == [said]
    model = files.model(f"attended-{scheme}")
    assert count(model, "QuantizeLinear") - count(files.model(scheme), "QuantizeLinear") == 4
    onnx.checker.check_model(typed(model, precision), full_check=True)
    assert relative(files.answers[f"attended-{scheme}"], files.logits) < 0.3

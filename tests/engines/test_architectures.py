"""What becomes of the encoders of transformers: the exported graph, simplified, quantized."""

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from splits import prepare_splits, split_of
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.int8.quantize import quantize_onnx
from tightrope.jobs.child import supervised
from tightrope.onnx.attention_operator import with_attention_operators
from tightrope.onnx.file import load_onnx
from tightrope.onnx.session import run_onnx
from tightrope.onnx.trial_shapes import TRIALS, shapes_seen
from tightrope.runtimes.tensorrt.typed_onnx import typed
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
    """The ONNX files of one architecture with random weights, and PyTorch's logits of `batch`."""

    folder: Path
    logits: np.ndarray

    def model(self, name: str) -> onnx.ModelProto:
        return load_onnx(self.folder / f"{name}.onnx")


def batch() -> Arrays:
    """Three texts of 16 tokens, two of them padded."""
    ids = np.random.default_rng(0).integers(5, 200, (3, 16))
    mask = np.ones_like(ids)
    mask[1, 9:] = mask[2, 1:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def make(folder: Path, source: str) -> np.ndarray:
    """Run in a child: the chain up to the quantized files, and logits by hand."""
    import torch
    from tightrope.checkpoint.source import prepare_checkpoint
    from tightrope.int8.calibrate import calibrate
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx
    from tightrope.training.train import TrainingSettings, train_model
    from transformers import AutoModelForSequenceClassification

    begun, checkpoint = folder / "source/checkpoint.json", folder / "checkpoint/checkpoint.json"
    data, exported, simplified = (
        folder / name for name in ("data/data.json", "exported.onnx", "simplified.onnx")
    )
    sizes = {"train": None, "evaluation": 8}
    prepare_splits(data, source="random", columns={}, splits=sizes, pool=SAMPLES, seed=0)
    prepare_checkpoint(begun, source=source, expected_sha256=None, seed=0)
    settings = TrainingSettings(recipe=None, inputs={}, threads=1, seed=0)
    train = split_of(data, "train")
    train_model(checkpoint, settings, source=begun, data=train, terminal=io.StringIO())
    export_onnx(checkpoint, exported, threads=1)
    simplify_onnx(exported, checkpoint, split_of(data, "timing"), simplified, threads=1)
    cache = folder / "minmax.json"
    options: dict[str, Any] = {"samples": SAMPLES, "percentile": None, "max_sequence": 64}
    inputs = (simplified, split_of(data, "calibration"), checkpoint, cache)
    calibrate(*inputs, method="minmax", libraries={}, threads=1, **options)
    for scheme in SCHEMES:
        quantize_onnx(simplified, cache, folder / f"{scheme}.onnx", scheme=scheme)
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint.parent).eval()
    with torch.inference_mode():
        given = {name: torch.from_numpy(array) for name, array in batch().items()}
        return model(**given).logits.numpy()


@pytest.fixture(scope="module", params=ARCHITECTURES)
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Files:
    name: str = request.param
    folder = tmp_path_factory.mktemp(name)
    source = f"scratch:{name}?{ARCHITECTURES[name]}"
    return Files(folder, supervised(make, folder, source, limits=LIMITS))


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("name", ["exported", "simplified"])
def test_logits_are_those_of_pytorch_also_beside_padding(files: Files, name: str) -> None:
    assert relative(run_onnx(files.model(name), [batch()], threads=1)[0], files.logits) < 1e-4


def test_a_text_of_padding_alone_gives_numbers(files: Files) -> None:
    given = batch()
    given["attention_mask"][1] = 0
    (found,) = run_onnx(files.model("simplified"), [given], threads=1)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[[0, 2]], files.logits[[0, 2]], rtol=1e-3, atol=1e-4)


def test_the_mask_is_a_row_per_text_and_nothing_scales_the_scores(files: Files) -> None:
    """Indexing and expanding a mask, and scaling each score, cost every runtime at each call."""
    model = files.model("simplified")
    assert "GatherND" not in {node.op_type for node in model.graph.node}
    shapes = shapes_seen(model)
    expanded = [(batch, 1, length, length) for batch, length in TRIALS]
    assert (expanded in shapes.values()) is (OWN_MASK in files.folder.name)
    scores = [shapes[node.input[0]] for node in model.graph.node if node.op_type == "Softmax"]
    assert len(scores) == LAYERS
    scaled = [node for node in model.graph.node if node.op_type in ("Mul", "Div")]
    found = [node for node in scaled if shapes[node.output[0]] in scores]
    assert bool(found) is (OWN_SCALE in files.folder.name)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_quantized_files_are_valid_and_answer_as_the_float_one(files: Files, scheme: str) -> None:
    model = files.model(scheme)
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    assert sum(node.op_type == "QuantizeLinear" for node in model.graph.node) >= 4
    (found,) = run_onnx(model, [batch()], threads=1)
    assert relative(found, files.logits) < 0.3


@pytest.mark.parametrize(
    ("name", "precision"),
    [("simplified", "fp16"), ("simplified", "bf16"), ("s8s8", "int8-fp16"), ("e4m3", "fp8")],
)
def test_the_typed_files_for_tensorrt_are_valid(files: Files, name: str, precision: str) -> None:
    onnx.checker.check_model(typed(files.model(name), precision), full_check=True)


@pytest.mark.parametrize("name", ["simplified", "s8s8"])
def test_attention_becomes_one_operator_where_its_form_is_known(files: Files, name: str) -> None:
    """Attention of MPNet and DeBERTa has a form of its own, and stays as it is."""
    model = with_attention_operators(files.model(name))
    onnx.checker.check_model(model, full_check=True)
    own = any(one in files.folder.name for one in (OWN_SCALE, OWN_MASK))
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("Attention") == (0 if own else LAYERS)
    assert kinds.count("Softmax") == (LAYERS if own else 0)
    found, expected = (run_onnx(one, [batch()], threads=1)[0] for one in (model, files.model(name)))
    assert relative(found, expected) < (1e-5 if name == "simplified" else 0.02)


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_the_typed_file_with_attention_operators_is_valid(files: Files, precision: str) -> None:
    model = typed(with_attention_operators(files.model("simplified")), precision)
    onnx.checker.check_model(model, full_check=True)


@pytest.mark.parametrize(("scheme", "precision"), FOR_TENSORRT.items())
def test_attention_is_quantized_or_the_reason_is_said(
    files: Files, tmp_path: Path, scheme: str, precision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mask of DeBERTa is a Where, with which TensorRT's pattern of attention does not fit."""
    target = tmp_path / "a.onnx"
    paths = files.folder / "simplified.onnx", files.folder / "minmax.json", target
    if OWN_MASK in files.folder.name:
        with pytest.raises(TightropeError, match=r"no attention .* come from Where\)"):
            quantize_onnx(*paths, scheme=scheme, repair={"attention": True})
        return
    quantize_onnx(*paths, scheme=scheme, repair={"attention": True})
    said = [line for line in capsys.readouterr().out.splitlines() if "attention of" in line]
    assert said == ["attention of node_softmax_1 stays in float: one query per example"]
    model, before = load_onnx(target), files.model(scheme)
    pairs = [sum(one.op_type == "QuantizeLinear" for one in m.graph.node) for m in (model, before)]
    assert pairs[0] - pairs[1] == 4
    onnx.checker.check_model(model, full_check=True)
    onnx.checker.check_model(typed(model, precision), full_check=True)
    (found,) = run_onnx(model, [batch()], threads=1)
    assert relative(found, files.logits) < 0.3

"""The recipes: what each tool's documentation gives for a text classifier on a CPU.

Libraries are imported only where a recipe runs: each has a process of its own, whose memory counts.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from olive_recipes import (
    make_olive_auto_opt,
    make_olive_optimize,
    make_olive_search,
    make_olive_static,
)
from source import MAX_DROP, Source


@dataclass(frozen=True)
class Recipe:
    """How one tool makes one artifact: `make` writes `file` into the folder that it is given."""

    tool: str
    command: str
    file: str
    make: Callable[[Source, Path], None]
    made_from: str = "checkpoint"


def make_openvino_fp32(source: Source, folder: Path) -> None:
    """Export with optimum-intel, no compression (its default below 1e9 parameters)."""
    from optimum.intel import OVModelForSequenceClassification

    model = OVModelForSequenceClassification.from_pretrained(
        source.checkpoint, export=True, compile=False
    )
    model.save_pretrained(folder)


def make_openvino_int8(source: Source, folder: Path) -> None:
    """Quantize activations and weights: "Full quantization" in optimum-intel's documentation."""
    from datasets import Dataset
    from optimum.intel import (
        OVConfig,
        OVModelForSequenceClassification,
        OVQuantizationConfig,
        OVQuantizer,
    )
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source.checkpoint)
    rows = tokenizer(
        source.texts, padding="max_length", max_length=source.max_sequence, truncation=True
    )
    model = OVModelForSequenceClassification.from_pretrained(
        source.checkpoint, export=True, compile=False
    )
    taken = {name: rows[name] for name in rows if name in model.input_names}
    config = OVConfig(quantization_config=OVQuantizationConfig(num_samples=len(source.texts)))
    OVQuantizer.from_pretrained(model).quantize(
        ov_config=config, calibration_dataset=Dataset.from_dict(taken), save_directory=folder
    )


def make_optimum_onnx_int8(source: Source, folder: Path) -> None:
    """Export, then do as `optimum-cli onnxruntime quantize --avx512_vnni` does by default."""
    from optimum.onnxruntime import ORTModelForSequenceClassification, ORTQuantizer
    from optimum.onnxruntime.configuration import AutoQuantizationConfig

    with tempfile.TemporaryDirectory() as scratch:
        model = ORTModelForSequenceClassification.from_pretrained(source.checkpoint, export=True)
        model.save_pretrained(scratch)
        ORTQuantizer.from_pretrained(scratch).quantize(
            save_dir=folder,
            quantization_config=AutoQuantizationConfig.avx512_vnni(
                is_static=False, per_channel=False
            ),
        )


def make_nncf_accuracy(source: Source, folder: Path) -> None:
    """Quantize the simplified ONNX with NNCF, which measures accuracy itself."""
    import nncf_recipe

    nncf_recipe.make_nncf_accuracy(source, folder)


OLIVE = "--task text-classification --device cpu --provider CPUExecutionProvider --precision int8"
INT8 = "OVQuantizer.quantize(OVConfig(quantization_config=OVQuantizationConfig(num_samples=...)))"
DYNAMIC = "AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=False)"
PASSES = "OnnxConversion, OrtTransformersOptimization"
NNCF = f"TRANSFORMER, MIXED, max_drop={MAX_DROP} absolute"
IR = "openvino_model.xml"
RECIPES = {
    "optimum-intel-fp32": Recipe(
        "optimum-intel",
        "OVModelForSequenceClassification.from_pretrained(..., export=True)",
        IR,
        make_openvino_fp32,
    ),
    "optimum-intel-int8": Recipe("optimum-intel", INT8, IR, make_openvino_int8),
    "optimum-onnx-int8-dynamic": Recipe(
        "optimum-onnx",
        f"ORTQuantizer.quantize({DYNAMIC})",
        "model_quantized.onnx",
        make_optimum_onnx_int8,
    ),
    "olive-auto-opt-int8": Recipe(
        "olive-ai", f"olive auto-opt {OLIVE}", "model.onnx", make_olive_auto_opt
    ),
    "olive-optimize-int8": Recipe(
        "olive-ai", f"olive optimize {OLIVE}", "model.onnx", make_olive_optimize
    ),
    "olive-static-int8": Recipe(
        "olive-ai",
        f"olive run, passes at defaults: {PASSES}, OnnxStaticQuantization",
        "model.onnx",
        make_olive_static,
    ),
    "olive-search-int8": Recipe(
        "olive-ai",
        f"olive run, search for accuracy within {MAX_DROP}: {PASSES}, OnnxQuantization",
        "model.onnx",
        make_olive_search,
    ),
    "nncf-accuracy-int8": Recipe(
        "nncf",
        f"nncf.quantize_with_accuracy_control({NNCF})",
        IR,
        make_nncf_accuracy,
        made_from="model.simplified.onnx",
    ),
}

"""The recipes: what each tool's documentation gives for a text classifier on a CPU."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from datasets import Dataset
from optimum.intel import (
    OVConfig,
    OVModelForSequenceClassification,
    OVQuantizationConfig,
    OVQuantizer,
)
from optimum.onnxruntime import ORTModelForSequenceClassification, ORTQuantizer
from optimum.onnxruntime.configuration import AutoQuantizationConfig
from transformers import AutoTokenizer

ERROR_LINE = re.compile(r"^[\w.]*(?:Error|Exception)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """A checkpoint folder, calibration texts and the longest sequence in tokens."""

    checkpoint: Path
    texts: list[str]
    max_sequence: int


@dataclass(frozen=True)
class Recipe:
    """How one tool makes one artifact: `make` writes `file` into the folder that it is given."""

    tool: str
    command: str
    file: str
    make: Callable[[Source, Path], None]


def make_openvino_fp32(source: Source, folder: Path) -> None:
    """Export with optimum-intel, no compression (its default below 1e9 parameters)."""
    model = OVModelForSequenceClassification.from_pretrained(
        source.checkpoint, export=True, compile=False
    )
    model.save_pretrained(folder)


def make_openvino_int8(source: Source, folder: Path) -> None:
    """Quantize activations and weights: "Full quantization" in optimum-intel's documentation."""
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
    with tempfile.TemporaryDirectory() as scratch:
        model = ORTModelForSequenceClassification.from_pretrained(source.checkpoint, export=True)
        model.save_pretrained(scratch)
        ORTQuantizer.from_pretrained(scratch).quantize(
            save_dir=folder,
            quantization_config=AutoQuantizationConfig.avx512_vnni(
                is_static=False, per_channel=False
            ),
        )


def run_olive(folder: Path, *arguments: str) -> None:
    """Run Olive's command line; it must write model.onnx.

    Raises RuntimeError where there is none afterwards: Olive can end with 0 and give no model.
    """
    environment = os.environ | {"OLIVE_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-m", "olive", *arguments, "--output_path", str(folder)]
    with tempfile.TemporaryDirectory() as scratch:  # Olive leaves its cache where it runs
        done = subprocess.run(
            command, cwd=scratch, env=environment, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    (folder / "olive.log").write_text(done.stdout)
    if not (folder / "model.onnx").exists():
        reasons = ERROR_LINE.findall(done.stdout) or ["no error in its output"]
        raise RuntimeError(f"Olive made no model, exit code {done.returncode}; {reasons[-1]}")


def olive_model(source: Source) -> list[str]:
    """Return Olive's arguments for an int8 model of this checkpoint on the CPU."""
    model = ["--model_name_or_path", str(source.checkpoint), "--task", "text-classification"]
    target = ["--device", "cpu", "--provider", "CPUExecutionProvider", "--precision", "int8"]
    return [*model, *target]


def make_olive_auto_opt(source: Source, folder: Path) -> None:
    """Run `olive auto-opt`."""
    run_olive(folder, "auto-opt", *olive_model(source))


def make_olive_optimize(source: Source, folder: Path) -> None:
    """Run `olive optimize`, which Olive says to use in place of auto-opt."""
    run_olive(folder, "optimize", *olive_model(source))


def make_olive_static(source: Source, folder: Path) -> None:
    """Run `olive run` with three passes, each at its defaults.

    The chain is that of examples/bert/bert_ptq_cpu.json in microsoft/Olive, without its search and
    tuning and with OnnxStaticQuantization for OnnxQuantization; the padding is that of its Q/DQ
    example. Accuracy depends much on the chain: without the second pass it is lower still.
    """
    texts = folder / "calibration.jsonl"  # Olive's text classification wants labels, unused here
    texts.write_text("".join(json.dumps({"text": t, "label": 0}) + "\n" for t in source.texts))
    calibration = {
        "name": "calibration",
        "type": "HuggingfaceContainer",
        "load_dataset_config": {"data_name": "json", "data_files": str(texts), "split": "train"},
        "pre_process_data_config": {
            "input_cols": ["text"],
            "max_length": source.max_sequence,
            "padding": "max_length",
        },
        "dataloader_config": {"batch_size": 1},
    }
    model = {
        "type": "HfModel",
        "model_path": str(source.checkpoint),
        "task": "text-classification",
        "load_kwargs": {"attn_implementation": "eager"},
    }
    passes = {
        "conversion": {"type": "OnnxConversion"},
        "transformers_optimization": {"type": "OrtTransformersOptimization"},
        "quantization": {"type": "OnnxStaticQuantization", "data_config": "calibration"},
    }
    config = folder / "olive.json"
    config.write_text(
        json.dumps({"input_model": model, "data_configs": [calibration], "passes": passes})
    )
    run_olive(folder, "run", "--config", str(config))


OLIVE = "--task text-classification --device cpu --provider CPUExecutionProvider --precision int8"
INT8 = "OVQuantizer.quantize(OVConfig(quantization_config=OVQuantizationConfig(num_samples=...)))"
DYNAMIC = "AutoQuantizationConfig.avx512_vnni(is_static=False, per_channel=False)"
PASSES = "OnnxConversion, OrtTransformersOptimization, OnnxStaticQuantization"
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
        "olive-ai", f"olive run, passes at defaults: {PASSES}", "model.onnx", make_olive_static
    ),
}

"""Olive's recipes for a text classifier on a CPU."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from source import MAX_DROP, Source

ERROR_LINE = re.compile(r"^[\w.]*(?:Error|Exception)\b.*", re.MULTILINE)
TASK = "text-classification"
FUSED = {
    "conversion": {"type": "OnnxConversion"},
    "transformers_optimization": {"type": "OrtTransformersOptimization"},
}
SEARCHED = {
    "type": "OnnxQuantization",
    "quant_preprocess": True,
    "per_channel": False,
    "reduce_range": False,
    "calibrate_method": "MinMax",
    "data_config": "calibration",
}
SEARCH = {"execution_order": "joint", "sampler": "tpe", "max_samples": 3, "seed": 0}


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
    model = ["--model_name_or_path", str(source.checkpoint), "--task", TASK]
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
    quantization = {"type": "OnnxStaticQuantization", "data_config": "calibration"}
    data = [written_data(folder / "calibration.jsonl", source, source.samples)]
    passes = FUSED | {"quantization": quantization}
    run_workflow(folder, input_model=hf_model(source), data_configs=data, passes=passes)


def make_olive_search(source: Source, folder: Path) -> None:
    """Run `olive run` with a search that evaluates accuracy and latency of what it tries.

    It is intel-bert-base-uncased-mrpc/oci/cpu/ptq.json in microsoft/olive-recipes, with MAX_DROP
    for its 0.05, accuracy from torchmetrics (the recipe's backend asks a model hub for a script)
    and without what is only reported. Export and fusion are a run of their own before the search:
    in olive-ai 0.13.0 a try ends in an error (FootprintNode has no field "model_config") where one
    of its passes comes from the cache, so that only the first try would be left.
    """
    classes = 1 + max(example["label"] for example in source.examples)
    with tempfile.TemporaryDirectory() as scratch:
        run_workflow(Path(scratch), input_model=hf_model(source), passes=FUSED)
        run_workflow(
            folder,
            input_model={"type": "ONNXModel", "model_path": f"{scratch}/model.onnx"},
            data_configs=[
                written_data(folder / "calibration.jsonl", source, source.samples),
                written_data(folder / "validation.jsonl", source, len(source.examples)),
            ],
            passes={"quantization": SEARCHED},
            search_strategy=SEARCH,
            evaluators={"common_evaluator": {"metrics": metrics(classes)}},
            evaluator="common_evaluator",
        )


def run_workflow(folder: Path, **config: Any) -> None:
    """Run `olive run` with that configuration, which is kept in olive.json."""
    file = folder / "olive.json"
    file.write_text(json.dumps(config, indent=1))
    run_olive(folder, "run", "--config", str(file))


def hf_model(source: Source) -> dict[str, Any]:
    """Return what Olive's configuration calls the checkpoint by."""
    return {
        "type": "HfModel",
        "model_path": str(source.checkpoint),
        "task": TASK,
        "load_kwargs": {"attn_implementation": "eager"},
    }


def written_data(file: Path, source: Source, samples: int) -> dict[str, Any]:
    """Write the first examples as JSON lines; return what Olive's configuration calls them by."""
    lines = [json.dumps(example) + "\n" for example in source.examples[:samples]]
    file.write_text("".join(lines))
    model = {"model_name": str(source.checkpoint), "task": TASK}
    return {
        "name": file.stem,
        "type": "HuggingfaceContainer",
        "load_dataset_config": {"data_name": "json", "data_files": str(file), "split": "train"},
        "pre_process_data_config": {
            **model,
            "input_cols": ["text"],
            "max_length": source.max_sequence,
            "padding": "max_length",
        },
        "post_process_data_config": model,
        "dataloader_config": {"batch_size": 1},
    }


def metrics(classes: int) -> list[dict[str, Any]]:
    """Return the goals of the search: accuracy before latency."""
    accuracy = {
        "name": "accuracy_score",
        "priority": 1,
        "metric_config": {"task": "multiclass", "num_classes": classes},
        "goal": {"type": "max-degradation", "value": MAX_DROP},
    }
    latency = {
        "name": "avg",
        "priority": 2,
        "goal": {"type": "percent-min-improvement", "value": 0.1},
    }
    return [
        {"name": kind, "type": kind, "data_config": "validation", "sub_types": [goal]}
        for kind, goal in (("accuracy", accuracy), ("latency", latency))
    ]

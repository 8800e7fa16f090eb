"""NNCF's quantization with accuracy control, as its documentation gives it for a transformer."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nncf
import numpy as np
import openvino
from source import MAX_DROP, Source
from tokenizers import Tokenizer

Item = tuple[dict[str, np.ndarray], int]


def make_nncf_accuracy(source: Source, folder: Path) -> None:
    """Write the IR; what NNCF measured, and what it took back to fp32, is in nncf.log."""
    logging.getLogger("nncf").addHandler(logging.FileHandler(folder / "nncf.log"))
    model = openvino.convert_model(source.onnx)
    items = encoded(source, [port.any_name for port in model.inputs])
    quantized = nncf.quantize_with_accuracy_control(
        model,
        calibration_dataset=nncf.Dataset(items[: source.samples], inputs_of),
        validation_dataset=nncf.Dataset(items, inputs_of),
        validation_fn=accuracy,
        max_drop=MAX_DROP,
        drop_type=nncf.DropType.ABSOLUTE,
        preset=nncf.QuantizationPreset.MIXED,
        model_type=nncf.ModelType.TRANSFORMER,
        subset_size=source.samples,
    )
    # what NNCF judged, to the bit: unsaid, what stays in fp32 would be saved in fp16
    openvino.save_model(quantized, folder / "openvino_model.xml", compress_to_fp16=False)


def encoded(source: Source, names: list[str]) -> list[Item]:
    """Inputs `names`, int64 [1, tokens] without padding, and label of every example."""
    tokenizer = Tokenizer.from_file(str(source.checkpoint / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(source.max_sequence)
    rows = tokenizer.encode_batch([example["text"] for example in source.examples])
    fields = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
    return [
        ({name: np.array([getattr(row, fields[name])]) for name in names}, example["label"])
        for row, example in zip(rows, source.examples, strict=True)
    ]


def inputs_of(item: Item) -> dict[str, np.ndarray]:
    """What the model takes of an item."""
    return item[0]


def accuracy(program: Any, items: Iterable[Item]) -> tuple[float, list[float]]:
    """The share of right answers, and of each item 1 or 0, which NNCF ranks operators by."""
    right = [float(program(inputs)[0].argmax() == label) for inputs, label in items]
    return sum(right) / len(right), right

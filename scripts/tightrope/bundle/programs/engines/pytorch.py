"""The engine of this bundle: PyTorch, eager."""

import json

import torch
from transformers import AutoModelForImageClassification, AutoModelForSequenceClassification

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def load(folder, threads):
    """Return run(inputs) -> float32 logits [batch, classes]."""
    torch.set_num_threads(threads)
    engine = json.loads((folder / "engine.json").read_text())
    dtype = DTYPES.get(engine["precision"], torch.float32)
    images = engine["inputs"][0][0] == "pixel_values"
    kind = AutoModelForImageClassification if images else AutoModelForSequenceClassification
    model = kind.from_pretrained(folder, dtype=dtype).eval()
    if engine["precision"] == "int8-dynamic":
        scheme = {torch.nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
        model = torch.ao.quantization.quantize_dynamic(model, scheme)

    def run(inputs):
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
            if images:
                tensors["pixel_values"] = tensors["pixel_values"].to(dtype)
            return model(**tensors).logits.float().numpy()

    return run

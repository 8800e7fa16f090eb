"""The engine of this bundle: torch.compile."""

import json

import torch
from torch._inductor import config
from transformers import AutoModelForSequenceClassification

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Logits(torch.nn.Module):
    """The model with its logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        """Return logits [batch, classes]."""
        return self.model(input_ids=input_ids, attention_mask=attention_mask).logits


def load(folder, threads):
    """Return run(inputs) -> float32 logits [batch, classes]."""
    torch.set_num_threads(threads)
    dtype = DTYPES.get(json.loads((folder / "engine.json").read_text())["precision"], torch.float32)
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=dtype)
    config.freezing = True
    program = torch.compile(Logits(model).eval(), dynamic=True)

    def run(inputs):
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
            return program(**tensors).float().numpy()

    for batch, tokens in ((2, 16), (1, 16)):
        ones = torch.ones(2, batch, tokens, dtype=torch.int64).numpy()
        run({"input_ids": ones[0], "attention_mask": ones[1]})
    return run

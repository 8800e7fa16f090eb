"""The engine of this bundle: TorchScript."""

import json

import torch


def load(folder, threads):
    """Return run(inputs) -> float32 logits [batch, classes]."""
    torch.set_num_threads(threads)
    engine = json.loads((folder / "engine.json").read_text())
    program = torch.jit.load(str(folder / "model.pt"), map_location="cpu")
    if engine["precision"] == "fp32" and engine["inputs"][0][0] == "pixel_values":
        program = torch.jit.optimize_for_inference(program)  # packed convolutions cannot be saved

    def run(inputs):
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
            return program(**tensors).float().numpy()

    return run

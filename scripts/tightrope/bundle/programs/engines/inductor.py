"""The engine of this bundle: AOTInductor."""

import torch
from torch._inductor import aoti_load_package


def load(folder, threads):
    """Return run(inputs) -> float32 logits [batch, classes]."""
    torch.set_num_threads(threads)
    program = aoti_load_package(str(folder / "model.pt2"))

    def run(inputs):
        with torch.inference_mode():
            tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
            return program(**tensors).float().numpy()

    return run

"""From a checkpoint to ONNX, batch and sequence dynamic."""

from pathlib import Path
from typing import Any

import torch

from tightrope.manifest import read_manifest
from tightrope.onnx_graph import require_one_file, save_onnx
from tightrope.torch_module import load_module

OPSET = 21


def export_onnx(checkpoint: Path | str, target: Path | str, *, threads: int) -> None:
    """Write the classifier of `checkpoint` as one ONNX file with output `logits`.

    Inputs: `input_ids`, `attention_mask` int64 [batch, sequence]; logits float32 [batch, classes].
    Attention is exported in its eager form: the decomposition of scaled_dot_product_attention
    adds guards against not-a-number that every runtime then has to compute.
    """
    read_manifest(checkpoint)
    torch.set_num_threads(threads)
    folder = Path(checkpoint).parent
    module = LogitsOnly(load_module(folder, torch.float32, attention="eager")).eval()
    require_one_file(target, sum(tensor.nbytes for tensor in module.state_dict().values()))
    names = ("input_ids", "attention_mask")
    # a tensor for each input: the exporter takes one tensor given twice for one input
    example = {name: torch.ones(2, 8, dtype=torch.int64) for name in names}
    axes: Any = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    program = torch.onnx.export(
        module,
        (),
        kwargs=example,
        dynamic_shapes=dict.fromkeys(names, axes),
        input_names=list(names),
        output_names=["logits"],
        opset_version=OPSET,
        external_data=False,
        dynamo=True,
        verbose=False,
    )
    save_onnx(program.model_proto, target)


class LogitsOnly(torch.nn.Module):
    """A transformers classifier whose output is the logits tensor itself."""

    def __init__(self, classifier: torch.nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Logits [batch, classes]."""
        return self.classifier(input_ids=input_ids, attention_mask=attention_mask).logits

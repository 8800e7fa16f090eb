"""Export a checkpoint to ONNX with a dynamic batch and, for texts, a dynamic sequence."""

from pathlib import Path

import torch

from tightrope.artifacts.descent import identity
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.model.module import dynamic_shapes, example_inputs, logits_module
from tightrope.onnx.attention import register_attention
from tightrope.onnx.file import require_one_file, save_onnx, set_checkpoint, set_max_sequence
from tightrope.onnx.imported import standard_model
from tightrope.signature import of_checkpoint
from tightrope.variants import is_onnx

OPSET = 21


def export_onnx(checkpoint: Path | str, target: Path | str, *, threads: int) -> None:
    """Write the classifier of `checkpoint` as one ONNX file with output `logits`.

    Inputs: `input_ids`, `attention_mask` int64 [batch, sequence], or `pixel_values` float32 [batch,
    3, height, width] of the single size that the model was prepared for; logits float32 [batch,
    classes].

    Attention is exported in the form of `onnx.attention`: the decomposition of
    scaled_dot_product_attention adds NaN guards that every runtime would compute. A source that is
    already an ONNX file is not exported; its inputs and output get these names. The file names the
    checkpoint.
    """
    manifest = read_manifest(checkpoint, CheckpointManifest)
    if is_onnx(manifest["source"]):
        model = standard_model(checkpoint)
        set_checkpoint(model, identity(manifest))
        return save_onnx(model, target)
    torch.set_num_threads(threads)
    module = logits_module(Path(checkpoint), torch.float32, attention=register_attention())
    require_one_file(target, sum(tensor.nbytes for tensor in module.state_dict().values()))
    input_signature = of_checkpoint(manifest)
    program = torch.onnx.export(
        module,
        (),
        kwargs=example_inputs(input_signature, 2),
        dynamic_shapes=dynamic_shapes(input_signature),
        input_names=[one.name for one in input_signature.inputs],
        output_names=["logits"],
        opset_version=OPSET,
        external_data=False,
        dynamo=True,
        verbose=False,
    )
    assert program is not None  # None is for dynamo=False
    model = program.model_proto
    set_max_sequence(model, manifest["max_sequence"])
    set_checkpoint(model, identity(manifest))
    save_onnx(model, target)

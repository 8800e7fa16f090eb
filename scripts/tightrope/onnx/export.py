"""Export a checkpoint to ONNX with a dynamic batch and, for texts, a dynamic sequence."""

from pathlib import Path
from typing import Any

import torch

from tightrope.artifacts.manifest import identity, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.model.module import dynamic_shapes, example_inputs, logits_module
from tightrope.onnx.file import require_one_file, save_onnx, set_checkpoint, set_max_sequence
from tightrope.onnx.imported import standard_model
from tightrope.signature import of_checkpoint
from tightrope.variants import is_onnx

OPSET = 21
NAME = "exported"
# half of float16's range: no sum with a score is infinite in any float type, and after a softmax in
# float32 a masked token weighs exactly 0
MASKED = torch.finfo(torch.float16).min / 2


def export_onnx(checkpoint: Path | str, target: Path | str, *, threads: int) -> None:
    """Write the classifier of `checkpoint` as one ONNX file with output `logits`.

    Inputs: `input_ids`, `attention_mask` int64 [batch, sequence], or `pixel_values` float32 [batch,
    3, height, width] of the single size that the model was prepared for; logits float32 [batch,
    classes].

    Attention is exported in the form of `attend`: the decomposition of
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
    try:
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
    except torch.onnx.OnnxExporterError as error:
        raise error.__cause__ or error from None  # its own words are the exporter's steps
    assert program is not None  # None is for dynamo=False
    model = program.model_proto
    set_max_sequence(model, manifest["max_sequence"])
    set_checkpoint(model, identity(manifest))
    save_onnx(model, target)


def register_attention() -> str:
    """Make `attend` known to transformers; return its name for `attn_implementation`.

    The eager attention of transformers indexes a boolean mask into [batch, 1, sequence, sequence]
    (GatherND, Range, Expand) and scales the scores, [batch, heads, sequence, sequence]. Both cost
    every runtime time at each call. Here the mask is [batch, 1, 1, sequence], and the query is
    scaled, so that `onnx.simplify` can fold the scale into the weights of its linear layer.
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, additive_mask)
    return NAME


def additive_mask(
    *, attention_mask: torch.Tensor | None = None, mask_function: Any, **sizes: Any
) -> torch.Tensor:
    """Return 0 for tokens and MASKED for padding, [batch, 1, 1, sequence].

    `attention_mask` is bool [batch, sequence]. Where it is not the whole mask, as with a sliding
    window, return the mask of eager attention, [batch, 1, sequence, sequence].
    """
    from transformers.masking_utils import bidirectional_mask_function, eager_mask

    if mask_function is not bidirectional_mask_function or attention_mask is None:
        return eager_mask(attention_mask=attention_mask, mask_function=mask_function, **sizes)
    return (1.0 - attention_mask[:, None, None, :].to(sizes["dtype"])) * MASKED


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Return attention [batch, sequence, heads, width] of tensors [batch, heads, sequence, width].

    The signature is that of transformers' attention functions.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = torch.matmul(query * scale, key.transpose(2, 3))
    if attention_mask is not None:
        scores = scores + attention_mask
    mixed = torch.matmul(torch.softmax(scores, dim=-1), value)
    return mixed.transpose(1, 2).contiguous(), None

"""Simplify an ONNX file, and check it against the checkpoint on real inputs."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from onnx import ModelProto
from onnx.checker import ValidationError

from tightrope.artifacts.descent import checkpoint_of, identity, require_descent
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.errors import ArtifactError, in_one_line
from tightrope.inputs.arrays import Arrays, length, stack
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.logit_distance import relative_error
from tightrope.model.module import logits_module, runner
from tightrope.onnx.file import load_onnx, save_onnx, set_checkpoint, simplified
from tightrope.onnx.first_token import with_unused_tokens_pruned
from tightrope.onnx.float_model import has_halves, in_float, is_quantized
from tightrope.onnx.imported import original_outputs
from tightrope.onnx.scales import with_scales_folded
from tightrope.onnx.session import require_equal, run_onnx
from tightrope.onnx.weights import named_by_module
from tightrope.variants import is_onnx

# relative to the largest logit of a batch
TOLERANCE = 1e-4
# of a quantized file whose other operators compute in float16 or bfloat16, here in float32
HALF_TOLERANCE = 0.02
CHANGES = {
    "scales folded into weights": with_scales_folded,
    "unused tokens pruned": with_unused_tokens_pruned,
}
# tokens of the longest compared example, if the model takes that many
LONGEST_CHECK = 128


def simplify_onnx(
    source: Path | str,
    checkpoint: Path | str,
    data: Path | str,
    target: Path | str,
    *,
    threads: int,
) -> None:
    """Write `source` with constants and scales folded, dead nodes removed, unused rows pruned.

    Operators with weights get the names of the checkpoint's modules. A file that is quantized
    already becomes the float model in it.

    Raises ArtifactError, and writes nothing, where `source` was made from another checkpoint, and
    where logits differ from the checkpoint's on examples of the split `data` in several shapes,
    with and without padding.
    """
    manifest = read_manifest(checkpoint, CheckpointManifest)
    tokens = min(LONGEST_CHECK, manifest["max_sequence"] or LONGEST_CHECK)
    examples = read_split(data)[:8]
    rows = list(load_encoder(checkpoint, max_sequence=tokens)(examples))
    if not rows:
        raise ArtifactError("the split for timing is empty")
    # one example, three padded, all padded, and the shortest alone
    batches = [stack(some) for some in (rows[:1], rows[:3], rows, [min(rows, key=length)])]
    reference = original_outputs if is_onnx(manifest["source"]) else module_outputs
    expected = reference(Path(checkpoint), batches, threads=threads)

    def difference(model: ModelProto) -> float:
        found = run_onnx(model, batches, threads=threads)
        return require_equal(found, expected, path=source, tolerance=tolerance)

    given = load_onnx(source)
    require_descent(source, checkpoint_of(given), checkpoint)
    tolerance = HALF_TOLERANCE if is_quantized(given) and has_halves(given) else TOLERANCE
    model = named_by_module(simplified(float_model(given, batches, expected)), prefix="classifier.")
    model, worst = with_changes(model, difference)
    print(f"largest difference from the checkpoint's logits: {worst:.2g} of the largest logit")
    set_checkpoint(model, identity(manifest))
    save_onnx(model, target)


def with_changes(
    model: ModelProto, difference: Callable[[ModelProto], float]
) -> tuple[ModelProto, float]:
    """Return the model with those of CHANGES that keep its logits, and its `difference`.

    `difference` raises ArtifactError for other logits. The model is correct without a change, and
    only computes more.
    """
    worst = difference(model)
    for done, change in CHANGES.items():
        try:
            changed = change(model)
            model, worst = changed, difference(changed)
        except (ArtifactError, ValidationError) as error:
            print(f"{done}: not possible here: {in_one_line(error)}")
    return model, worst


def float_model(model: ModelProto, batches: list[Arrays], expected: list[np.ndarray]) -> ModelProto:
    """Return `model`, or the float model in it where it is quantized already.

    Prints how far the logits of the quantized file are from the float model's, `expected`.
    """
    if not is_quantized(model):
        return model
    found = np.concatenate(run_onnx(model, batches, threads=1))
    error = relative_error(found.tolist(), np.concatenate(expected).tolist()) or 0.0
    print(
        f"a quantized file: its logits differ from its float model's by {100 * error:.2g} % (RMS)"
    )
    return in_float(model)


def module_outputs(checkpoint: Path, batches: list[Arrays], *, threads: int) -> list[np.ndarray]:
    """Return logits of the checkpoint in PyTorch."""
    import torch

    torch.set_num_threads(threads)
    run = runner(logits_module(checkpoint, torch.float32))
    return [run(batch) for batch in batches]

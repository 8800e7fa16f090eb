"""The simplified ONNX file, proved against the checkpoint on real inputs."""

from pathlib import Path

import torch

from tightrope.errors import ArtifactError
from tightrope.inputs import Arrays, load_encoder, read_split, stack
from tightrope.manifest import read_manifest
from tightrope.onnx_graph import load_onnx, require_equal, run_onnx, save_onnx, simplified
from tightrope.torch_module import load_module

# relative to the largest logit of a batch
TOLERANCE = 1e-4
# tokens of the longest example that is compared, where the model takes as many
LONGEST_CHECK = 128


def simplify_onnx(
    source: Path | str,
    checkpoint: Path | str,
    data: Path | str,
    target: Path | str,
    *,
    threads: int,
) -> None:
    """Write `source` with constants folded and dead nodes dropped.

    Raises ArtifactError, and writes nothing, where its logits differ from the checkpoint's
    on real examples of several shapes, alone and padded.
    """
    torch.set_num_threads(threads)
    tokens = min(LONGEST_CHECK, read_manifest(checkpoint)["max_sequence"] or LONGEST_CHECK)
    rows = load_encoder(checkpoint, max_sequence=tokens)(read_split(data, "evaluation")[:8])
    batches = several_shapes(rows)
    module = load_module(Path(checkpoint).parent, torch.float32)
    with torch.inference_mode():
        expected = [
            module(
                **{name: torch.from_numpy(array) for name, array in batch.items()}
            ).logits.numpy()
            for batch in batches
        ]
    model = simplified(load_onnx(source))
    found = run_onnx(model, batches, threads=threads)
    worst = require_equal(found, expected, path=source, tolerance=TOLERANCE)
    print(f"largest difference from the checkpoint's logits: {worst:.2g} of the largest logit")
    save_onnx(model, target)


def several_shapes(rows: list[Arrays]) -> list[Arrays]:
    """One example alone, three padded to the longest, all of them, and the shortest alone."""
    if not rows:
        raise ArtifactError("the evaluation split is empty")
    shortest = min(rows, key=lambda row: row["input_ids"].size)
    return [stack(rows[:1]), stack(rows[:3]), stack(rows), stack([shortest])]

"""Export a classifier for a range of shapes and try shapes, in a process that has not forked.

    python exports_within.py '{"checkpoint": "checkpoint.json",
        "profile": [[1, 1], [2, 8], [4, 16]], "shapes": [[1, 8]]}'

Prints as JSON, per shape, the largest difference of the exported program's logits from the
module's, or the error.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

import torch
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.model.module import logits_module
from tightrope.runtimes.tensorrt.profiles import Profile
from tightrope.runtimes.torch.ranges import axes_within, example_within, without_gathers
from tightrope.signature import of_checkpoint


def differences(checkpoint: Path, profile: Profile, shapes: list[list[int]]) -> list[Any]:
    """Return what is printed."""
    module = logits_module(checkpoint, torch.float32)
    signature = of_checkpoint(read_manifest(checkpoint, CheckpointManifest))
    example, axes = example_within(signature, profile, "cpu"), axes_within(signature, profile)
    found: list[Any] = []
    with torch.no_grad():
        program = torch.export.export(
            without_gathers(module), (), kwargs=example, dynamic_shapes=axes
        )
        assert "aten.gather" not in str(program.graph)
        for sizes in map(tuple, shapes):
            inputs = example_within(signature, Profile(sizes, sizes, sizes), "cpu")
            try:
                logits = program.module()(**inputs)
                found.append(float((logits - module(**inputs)).abs().max()))
            except AssertionError as error:
                found.append(str(error))
    return found


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    profile = Profile.of(asked["profile"])
    print(json.dumps(differences(Path(asked["checkpoint"]), profile, asked["shapes"])))

"""What takes a Python or a child of its own: an export elsewhere, a training that is compiled."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from breaking import killed_at
from programs import printed_in
from tightrope.jobs.child import supervised
from tiny_model import LIMITS

EXPORT = """
import sys
from tightrope.onnx.export import export_onnx
export_onnx(sys.argv[1], sys.argv[2], threads=int(sys.argv[3]))
"""
RECIPE = {"epochs": 2, "batch": 16, "learning_rate": 5e-3, "amp": "off", "device": "cpu"}


def test_an_export_has_the_bytes_of_one_in_another_place_and_process(repository, tiny, tmp_path):
    elsewhere, target = tmp_path / "another place" / "checkpoint", tmp_path / "out" / "model.onnx"
    elsewhere.mkdir(parents=True)
    for file in tiny.checkpoint.parent.iterdir():
        (elsewhere / file.name).write_bytes(file.read_bytes())
    own = {"PYTHONPATH": str(repository / "scripts"), "PYTHONHASHSEED": "7", "HOME": str(tmp_path)}
    printed_in(tmp_path, "-c", EXPORT, elsewhere / "checkpoint.json", target, 2, **own)
    assert target.read_bytes() == tiny.onnx.read_bytes()


def trained(compiled: bool, state: Path | None = None) -> Any:
    """Run in a child: weights and history of a training of one layer on eight by eight pixels."""
    import torch
    from tightrope.training.examples import image_subject
    from tightrope.training.loop import TrainingState, fine_tune
    from tightrope.training.recipe import whole_recipe
    from tightrope.training.step import prepare_device
    from transformers.modeling_outputs import ImageClassifierOutput

    class Linear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.nn.Linear(3 * 8 * 8, 4)

        def forward(self, pixel_values: torch.Tensor) -> ImageClassifierOutput:
            return ImageClassifierOutput(logits=self.head(pixel_values.flatten(1)))

    prepare_device("cpu", 1)
    torch.manual_seed(0)
    images = np.random.default_rng(0).normal(size=(96, 3, 8, 8)).astype(np.float32)
    subject = image_subject(Linear(), [{"pixel_values": one} for one in images], np.arange(96) % 4)
    terminal = io.StringIO()
    kept = None if state is None else TrainingState(state, "key")
    recipe = whole_recipe({**RECIPE, "compile": compiled}, 0)
    course, _ = fine_tune(subject, recipe, device="cpu", terminal=terminal, state=kept)
    return subject.model.head.weight.detach().numpy(), course


def compiled_course(state: Path) -> None:
    """Run in a child, whose programs are compiled once."""
    (_, eager), (weights, whole) = trained(compiled=False), trained(compiled=True)
    assert eager.compile_s is None
    assert 0 < whole.compile_s < whole.epochs[0]["seconds"]
    np.testing.assert_allclose(whole.losses, eager.losses, rtol=1e-3)
    with killed_at(8):
        trained(compiled=True, state=state)
    np.testing.assert_array_equal(trained(compiled=True, state=state)[0], weights)


def test_a_compiled_training_learns_the_same_and_goes_on_to_the_same(tmp_path: Path) -> None:
    supervised(compiled_course, tmp_path, limits=LIMITS)

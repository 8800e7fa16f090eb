"""Exports for a range of shapes take every shape of it, and no other."""

import pytest
import torch
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest
from tightrope.jobs.child import Limits, supervised
from tightrope.model.module import logits_module
from tightrope.runtimes.tensorrt.profiles import Profile
from tightrope.runtimes.torch.ranges import axes_within, example_within, without_gathers
from tightrope.signature import of_checkpoint
from tiny_model import TinyModel

LIMITS = Limits(memory_bytes=8e9, seconds=120)
Sizes = tuple[int, ...]


def differences(model: TinyModel, profile: Profile, shapes: list[Sizes]) -> list[str | float]:
    """Run in a child: largest difference of the exported program's logits per shape, or its error.

    On one thread, for the parent may have had more, which the child has not.
    """
    torch.set_num_threads(1)
    module = logits_module(model.checkpoint, torch.float32)
    signature = of_checkpoint(read_manifest(model.checkpoint, CheckpointManifest))
    example = example_within(signature, profile, "cpu")
    axes = axes_within(signature, profile)
    with torch.no_grad():
        program = torch.export.export(
            without_gathers(module), (), kwargs=example, dynamic_shapes=axes
        )
        assert "aten.gather" not in str(program.graph)
        found: list[str | float] = []
        for sizes in shapes:
            inputs = example_within(signature, Profile(sizes, sizes, sizes), "cpu")
            try:
                logits = program.module()(**inputs)
                found.append(float((logits - module(**inputs)).abs().max()))
            except AssertionError as error:
                found.append(str(error))
    return found


@pytest.mark.parametrize("tuned", [(16, 64), (16, 16), (1, 64)])
def test_texts_of_every_shape_of_the_profile_have_the_logits_of_the_module(
    tiny: TinyModel, tuned: Sizes
) -> None:
    profile, shapes = Profile((1, 1), tuned, (16, 64)), [(1, 1), (1, 64), (3, 5), (16, 64)]
    assert supervised(differences, tiny, profile, shapes, limits=LIMITS) == pytest.approx(
        [0, 0, 0, 0], abs=1e-5
    )


def test_a_shape_beyond_the_profile_is_refused(tiny: TinyModel) -> None:
    profile = Profile((1, 1), (4, 32), (4, 64))
    ((error),) = supervised(differences, tiny, profile, [(5, 32)], limits=LIMITS)
    assert "input_ids.size()[0] <= 4" in str(error)


def test_an_axis_of_one_size_is_fixed(tiny: TinyModel) -> None:
    profile = Profile((1, 1), (1, 32), (1, 64))
    first, second = supervised(differences, tiny, profile, [(1, 7), (2, 7)], limits=LIMITS)
    assert first == pytest.approx(0, abs=1e-5)
    assert "size" in str(second)


def test_images_have_a_free_batch_alone(tiny_images: TinyModel) -> None:
    profile = Profile((1,), (1,), (8,))
    shapes: list[Sizes] = [(1,), (3,), (8,)]
    assert supervised(differences, tiny_images, profile, shapes, limits=LIMITS) == pytest.approx(
        [0, 0, 0], abs=1e-5
    )

"""Convolutions through TVM: those of PyTorch, whatever their shape; and how ConvNeXt is done."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from tightrope.jobs.child import supervised
from tightrope.model.activations import ACTIVATIONS
from tiny_model import LIMITS

# what torch.nn.Conv2d is told, and the height and width of its image
CONVOLUTIONS: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "1x1": ({}, (5, 7)),
    "1x1 without bias": ({"bias": False}, (6, 6)),
    "1x1 every second": ({"stride": 2}, (7, 8)),
    "3x3": ({"kernel_size": 3, "padding": 1}, (8, 8)),
    "3x3 halving": ({"kernel_size": 3, "padding": 1, "stride": 2}, (9, 8)),
    "3x3 without padding": ({"kernel_size": 3}, (9, 5)),
    "3x3 dilated": ({"kernel_size": 3, "padding": 2, "dilation": 2}, (8, 8)),
    "patches": ({"kernel_size": 4, "stride": 4, "in_channels": 3}, (16, 12)),
    "patches with a rest": ({"kernel_size": 2, "stride": 2}, (7, 9)),
    "7x7 halving": ({"kernel_size": 7, "stride": 2, "padding": 3, "in_channels": 3}, (16, 16)),
    "two sides": ({"kernel_size": (1, 5), "padding": (0, 2), "stride": (2, 1)}, (6, 9)),
    "odd channels": ({"kernel_size": 3, "in_channels": 5, "out_channels": 37}, (6, 6)),
    "depthwise 7x7": ({"kernel_size": 7, "padding": 3, "groups": 16}, (14, 14)),
    "depthwise 7x7 on less": ({"kernel_size": 7, "padding": 3, "groups": 16}, (2, 2)),
    "depthwise 3x3 halving": (
        {"kernel_size": 3, "padding": 1, "stride": 2, "groups": 16, "bias": False},
        (9, 9),
    ),
    "depthwise 5x3 dilated": ({"kernel_size": (5, 3), "dilation": (1, 2), "groups": 16}, (9, 31)),
    "depthwise of odd channels": (
        {"kernel_size": 3, "groups": 17, "in_channels": 17, "out_channels": 17},
        (6, 8),
    ),
    "depthwise 13x13": ({"kernel_size": 13, "padding": 6, "groups": 16}, (29, 29)),
    "groups": ({"kernel_size": 3, "padding": 1, "groups": 4}, (8, 8)),
    "more channels from each": ({"kernel_size": 3, "groups": 16, "out_channels": 32}, (8, 8)),
    "padding by name": ({"kernel_size": 4, "padding": "same"}, (8, 8)),
    "padding by reflection": ({"kernel_size": 3, "padding": 1, "padding_mode": "reflect"}, (8, 8)),
}
STAYS = {"groups", "more channels from each", "padding by name", "padding by reflection"}
BATCH = 2


class Answer(NamedTuple):
    """What TVM and PyTorch gave, and the class of the layer that was exported for TVM."""

    tvm: np.ndarray
    torch: np.ndarray
    layer: str


class Program(NamedTuple):
    """A model through TVM: both answers, its operators before and its functions after fusing."""

    tvm: np.ndarray
    torch: np.ndarray
    operators: Counter[str]
    functions: list[str]
    unscheduled: list[str]


def program_of(module: Any, shape: tuple[int, ...]) -> Program:
    """Run in a child: `module`, which is changed, on random numbers of that shape."""
    import torch
    import tvm
    from tightrope.engines.tvm import host_target, set_threads
    from tightrope.runtimes.tvm.convolutions import channels_last
    from tightrope.runtimes.tvm.layouts import operator, settled
    from tightrope.runtimes.tvm.programs import lowered, scheduled, translated, transposed
    from tvm import relax

    set_threads(1)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    with torch.inference_mode():
        expected = module(torch.from_numpy(x)).numpy()
    module = channels_last(transposed(module))
    imported, weights = translated(torch.export.export(module, (torch.from_numpy(x),)))
    operators: list[str] = []
    main = settled(imported)["main"]
    relax.analysis.post_order_visit(main, lambda one: operators.append(operator(one)))
    with host_target(1) as host:
        loops = scheduled(lowered(imported), {})
        functions = {
            name.name_hint: one
            for name, one in loops.functions_items()
            if isinstance(one, tvm.tirx.PrimFunc)
        }
        built = relax.VirtualMachine(tvm.compile(loops, host), tvm.cpu())
    given = [tvm.runtime.tensor(array) for array in (x, *weights.values())]
    left = [n for n, one in functions.items() if not one.attrs.get("tirx.is_scheduled")]
    found = built["main"](*given).numpy()
    return Program(found, expected, Counter(operators), sorted(functions), left)


def convolved() -> dict[str, Answer]:
    """Run in a child: each of the convolutions."""
    import torch

    answers = {}
    for name, (options, size) in CONVOLUTIONS.items():
        torch.manual_seed(0)
        facts = {"in_channels": 16, "out_channels": 16, "kernel_size": 1, **options}
        module = torch.nn.Sequential(torch.nn.Conv2d(**facts)).eval()
        program = program_of(module, (BATCH, facts["in_channels"], *size))
        answers[name] = Answer(program.tvm, program.torch, type(module[0]).__name__)
    return answers


def classified() -> dict[str, Program]:
    """Run in a child: small ConvNeXts, one an activation, and other networks."""
    small = {"convnext of one place": network("gelu", 8)}
    return small | {name: network(name, 32) for name in (*ACTIVATIONS, "resnet", "mobilenet")}


def network(architecture: str, side: int) -> Program:
    """Images of that side through a ResNet, a MobileNetV2 or a ConvNeXt with that activation."""
    import torch
    from tightrope.model.activations import replace_activations
    from tightrope.model.module import logits_only
    from transformers import (
        ConvNextConfig,
        ConvNextForImageClassification,
        MobileNetV2Config,
        MobileNetV2ForImageClassification,
        ResNetConfig,
        ResNetForImageClassification,
    )

    torch.manual_seed(0)
    stages: dict[str, Any] = {"hidden_sizes": [16, 32], "depths": [1, 1], "num_labels": 10}
    if architecture == "resnet":
        model = ResNetForImageClassification(ResNetConfig(embedding_size=16, **stages))
    elif architecture == "mobilenet":
        model = MobileNetV2ForImageClassification(MobileNetV2Config(depth_multiplier=0.35))
    else:
        facts = {"num_stages": 2, "layer_scale_init_value": 1.0, "initializer_range": 0.2}
        model = ConvNextForImageClassification(ConvNextConfig(**facts, **stages))
        replace_activations(model, architecture)
    for one in model.modules():
        if isinstance(one, torch.nn.BatchNorm2d):
            one.running_mean.normal_()
            one.running_var.uniform_(0.5, 2)
    return program_of(logits_only(model), (BATCH, 3, side, side))


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    return supervised(convolved, limits=LIMITS)


@pytest.fixture(scope="module")
def networks() -> dict[str, Program]:
    return supervised(classified, limits=LIMITS)


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    assert found.shape == expected.shape
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_gives_what_it_gives_in_pytorch(
    name: str, answers: dict[str, Answer]
) -> None:
    assert difference(answers[name].tvm, answers[name].torch) < 1e-5


def test_only_unusual_convolutions_stay_as_they_are(answers: dict[str, Answer]) -> None:
    assert {name for name, one in answers.items() if one.layer == "Conv2d"} == STAYS
    kinds = {one.layer for name, one in answers.items() if name.startswith("depthwise")}
    assert kinds == {"Depthwise"}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_nothing_of_a_convnext_is_computed_apart_from_its_products(
    activation: str, networks: dict[str, Program]
) -> None:
    """Bias, activation, layer scale and residual sum are done where the product is."""
    program = networks[activation]
    assert difference(program.tvm, program.torch) < 1e-5
    kinds = {name.rstrip("0123456789").split("_")[0] for name in program.functions}
    assert kinds == {"fused", "layer", "mean", "padded", "patches", "transpose"}
    fused = [name.split("_")[1] for name in program.functions if name.startswith("fused")]
    assert {name.rstrip("0123456789") for name in fused} == {"matmul", "depthwise"}
    assert program.unscheduled == []
    # the pixels come with their channels first, and from there on they stay last
    assert program.operators["relax.permute_dims"] == 1


def test_a_last_feature_map_of_one_place_is_pooled_as_well(networks: dict[str, Program]) -> None:
    program = networks["convnext of one place"]
    assert difference(program.tvm, program.torch) < 1e-5
    assert program.unscheduled == []


@pytest.mark.parametrize("architecture", ["resnet", "mobilenet"])
def test_other_networks_are_what_they_are_in_pytorch_with_batch_norm_on_the_products(
    architecture: str, networks: dict[str, Program]
) -> None:
    program = networks[architecture]
    assert difference(program.tvm, program.torch) < 1e-5
    assert program.unscheduled == []
    assert not {"relax.nn.batch_norm", "relax.nn.conv2d"} & set(program.operators)

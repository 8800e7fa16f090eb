"""Values are rounded as the quantized files round them, and ranges have a gradient."""

import numpy as np
import pytest
import torch
from onnxruntime.quantization.quant_utils import compute_scale_zp
from tightrope.int8.schemes import SCHEMES
from tightrope.training.quantization_aware import GRIDS, InputQuantizer, WeightQuantizer

LOW, HIGH = -0.7, 2.9


def values(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)) * 2


def test_there_is_a_grid_for_each_scheme_of_the_files() -> None:
    assert set(GRIDS) == set(SCHEMES)
    for name, scheme in SCHEMES.items():
        assert GRIDS[name].symmetric is (scheme.symmetric is not None)


def test_u8_activations_are_those_of_onnx_runtimes_quantizer() -> None:
    exact = values(4, 50)
    bounds = (np.float32(LOW), np.float32(HIGH), np.uint8(0), np.uint8(255))
    zero, scale = compute_scale_zp(*bounds)
    steps = np.clip(np.rint(exact.numpy() / scale) + zero, 0, 255)
    found = InputQuantizer(GRIDS["u8s8"], LOW, HIGH)(exact).detach().numpy()
    np.testing.assert_allclose(found, (steps - zero) * scale, atol=1e-6)


@pytest.mark.parametrize(("scheme", "least", "most"), [("s8s8", 250, 255), ("e4m3", 100, 253)])
def test_symmetric_activations_lie_on_their_grid(scheme: str, least: int, most: int) -> None:
    exact = torch.linspace(-4, 4, 100_001)
    found = InputQuantizer(GRIDS[scheme], LOW, HIGH)(exact).detach()
    assert least <= len(found.unique()) <= most
    assert found.max() == -found.min() == pytest.approx(HIGH, rel=1e-3)
    inner = exact.abs() < HIGH
    assert (found - exact)[inner].abs().max() < HIGH / (12 if scheme == "e4m3" else 250)


@pytest.mark.parametrize(("scheme", "steps"), [("u8s8", 127), ("u8s7", 64), ("s8s8", 127)])
def test_weights_have_a_scale_per_output_channel(scheme: str, steps: int) -> None:
    exact = values(3, 40) * torch.tensor([[0.01], [1.0], [0.0]])
    found = WeightQuantizer(GRIDS[scheme])(exact)
    for row, own in zip(exact[:2], found[:2], strict=True):
        integers = own / (row.abs().max() / steps)
        torch.testing.assert_close(integers, integers.round(), atol=0.1, rtol=0)
        assert integers.abs().max() == pytest.approx(steps, rel=1e-3)
    assert not found[2].any()
    # the gradient goes straight through
    weight = torch.nn.Parameter(exact)
    (WeightQuantizer(GRIDS[scheme])(weight) * 3).sum().backward()
    assert weight.grad is not None and (weight.grad == 3).all()


def test_the_gradient_of_a_range_is_that_of_learned_step_sizes() -> None:
    """Esser et al. 2020, equation 3, with the size of section 2.2; of the scale's logarithm."""
    exact, quantizer = values(200), InputQuantizer(GRIDS["s8s8"], -1.0, 1.0)
    quantizer(exact).sum().backward()
    step = float(np.float16(1 / 127))
    steps = exact / step
    inner = torch.where(steps.abs() <= 127, steps.round() - steps, 127 * steps.sign())
    expected = inner.sum() * (1 / 127) / np.sqrt(len(exact) * 127)
    assert quantizer.logarithms.grad is not None
    assert quantizer.logarithms.grad.item() == pytest.approx(expected.item(), rel=1e-3)


def test_what_a_range_cuts_off_has_no_gradient() -> None:
    exact = torch.tensor([-3.0, -0.5, 0.0, 1.0, 9.0], requires_grad=True)
    InputQuantizer(GRIDS["u8s8"], LOW, HIGH)(exact).sum().backward()
    assert exact.grad is not None and exact.grad.tolist() == [0, 1, 1, 1, 0]
    # an activation that was always zero stays zero
    for scheme in GRIDS:
        found = InputQuantizer(GRIDS[scheme], 0.0, 0.0)(torch.zeros(5))
        assert found.tolist() == [0] * 5

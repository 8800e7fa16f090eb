"""Times of PyTorch's operators, where the machine stops some of them, and of a GPU's kernels."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tightrope.engines.kernel_times import kernels_of, operators_of, times_of
from tightrope.engines.kernel_times import profiled as profiled_steps
from tightrope.errors import WorkFailed
from tightrope.runtimes.torch_operators import time_of

SIDE = 16


def profiled(work: Callable[[], Any]) -> Any:
    """The events of what PyTorch does there on the CPU."""
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, record_shapes=True) as profile:
        work()
    return profile.events()


def test_a_product_counts_once_however_long_the_operator_around_it_was_stopped() -> None:
    x, weight, bias = torch.ones(SIDE, SIDE), torch.ones(SIDE, SIDE), torch.ones(SIDE)
    events = profiled(lambda: torch.nn.functional.linear(x, weight, bias))
    (linear,) = (event for event in events if event.name == "aten::linear")
    # as if another process had run between two operators
    linear.time_range.end += 1e6
    assert linear.self_cpu_time_total > sum(one.cpu_time_total for one in linear.cpu_children)
    products = [one for event in events if (one := time_of(event)).group == "products"]
    assert [(one.kind, one.operations) for one in products] == [("addmm", 2.0 * SIDE**3)]


def test_an_operator_that_converts_its_number_works_itself() -> None:
    x = torch.ones(256, 256)
    (add,) = (event for event in profiled(lambda: x + 1) if event.name == "aten::add")
    # as if only its work had taken time
    add.time_range.end += 1e6
    assert add.cpu_children
    assert time_of(add).group == "elementwise"


# of eager PyTorch, cuBLAS, TensorRT and Inductor
KERNELS = {
    "sm80_xmma_gemm_i8i8_i8i32_f32_tn_n_tilesize128x128x64": ("products", "int8"),
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT": ("products", "unknown"),
    "ampere_sgemm_128x64_tn": ("products", "fp32"),
    "_gemm_mha_v2_0x1b1e2f": ("attention", "unknown"),
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, bfloat16>>": (
        *("attention", "bf16"),
    ),
    "void at::native::vectorized_layer_norm_kernel<float, float>(int)": ("fused kernels", "fp32"),
    "triton_poi_fused_add_gelu_0": ("fused kernels", "unknown"),
    "Memcpy HtoD (Pinned -> Device)": ("copies to and from the GPU", "unknown"),
}


def test_a_kernel_has_group_and_type_by_its_name_and_lost_ones_are_noticed() -> None:
    kernels = [(name, 1e-4) for name in KERNELS] * 3
    found = times_of(kernels, 3, 1e-3, graph=True)
    assert {one.name: (one.group, one.type) for one in found} == KERNELS
    assert [one.seconds for one in found] == pytest.approx([1e-4] * len(KERNELS))
    gaps = times_of(kernels, 3, 1e-2, graph=False)
    assert len(gaps) == len(KERNELS), "between kernels the GPU may wait for the host"
    for seen, device_s, reason in (
        (kernels[1:], 1e-3, "lost kernels: 2 of sm80_xmma.* in 3 calls"),
        (kernels, 1e-2, "says 0.7 ms of kernels in a call of 10 ms"),
        (kernels, 1e-4, "says 0.7 ms of kernels in a call of 0.1 ms"),
        ([], 1e-3, "recorded no kernels"),
    ):
        with pytest.raises(WorkFailed, match=f"PyTorch's profiler {reason}"):
            times_of(seen, 3, device_s, graph=True)


def test_nothing_of_the_cpu_is_a_kernel_and_operators_have_the_time_of_theirs() -> None:
    x = torch.ones(SIDE, SIDE)
    events = profiled_steps(lambda: x @ x, 3)
    assert kernels_of(events) == [] and list(operators_of(events)) == []
    products = [event for event in events if event.name == "aten::mm"]
    assert len(products) == 3, "the first step is discarded"
    products[0].use_device = "cuda"
    products[0].append_kernel("ampere_sgemm", 0, 5)
    (step,) = (event for event in events if event.name.startswith("ProfilerStep"))
    assert step.is_user_annotation, "no kernel, though on a GPU it has a device and a time"
    (found,) = operators_of(products[:1])
    assert (found.kind, found.operations) == ("mm", 2.0 * SIDE**3)
    assert found.seconds == pytest.approx(5e-6)

"""Times of the operators of a compiled package: oneDNN's log, and the kernels that it names."""

import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tightrope.records.profile import OperatorTime
from tightrope.runtimes.operator_times import DISPATCH, FUSED, Tensor, operator_time, per_call
from tightrope.runtimes.torch.operator_times import operator_times as by_profiler
from tightrope.runtimes.torch.operators import ONEDNN, onednn_log

# ...,exec,cpu,matmul,brg_matmul:avx512_core,...,src:u8:... wei:s8:...,...,64x384:384x384,0.0168
LINE = re.compile(
    r"onednn_verbose,.*?exec,cpu,(?P<kind>\w+),.*?\bsrc(?:_\w+)?:(?P<source>\w+):"
    r".*?\bdst:(?P<result>\w+):.*,(?P<sizes>[^,]+),(?P<ms>[\d.e+-]+)$"
)
WEIGHTS = re.compile(r"\bwei:(\w+):")
# graph_0_cpp_fused_add_gelu_3
KERNEL = re.compile(r"^(graph_\d+_)?cpp_fused_")
# aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu
CALL = re.compile(r"^(graph_\d+_)?aoti_torch_cpu_")
# calls of which oneDNN's log has the primitives
BY_ONEDNN = re.compile(r"linear_pointwise|conv|mkldnn|onednn")
# mb64ic384oc1536, and of a convolution mb1_ic3oc64_ih32oh32kh3...
NAMED = re.compile(r"([a-z]+)(\d+)")


def operator_times(run: Callable[[], Any], calls: int) -> list[OperatorTime]:
    """Return the time of each oneDNN primitive and each of Inductor's kernels, the longest first.

    oneDNN's log has the sizes of its primitives. Kernels that Inductor wrote itself and other calls
    of PyTorch's operators (attention) are listed by PyTorch's profiler if the package was compiled
    with `cpp.enable_kernel_profile`, without sizes: their work is 0.
    """
    lines = onednn_log(run, calls)
    logged = per_call([time_of(match) for line in lines if (match := LINE.search(line))], calls)
    found, calls_s = [*logged], 0.0
    for one in by_profiler(run, calls):
        if KERNEL.search(one.kind):
            found.append(replace(one, group=FUSED, operations=0.0, bytes=0.0))
        elif CALL.search(one.kind) and BY_ONEDNN.search(one.kind):
            calls_s += one.seconds
        elif CALL.search(one.kind):
            found.append(replace(one, operations=0.0, bytes=0.0))
    # what the calls of oneDNN take beyond its primitives: choosing them, and copies
    name = "calls of oneDNN beyond its primitives"
    rest = max(0.0, calls_s - sum(one.seconds for one in logged))
    found.append(OperatorTime(name, name, DISPATCH, "fp32", rest, 0.0, 0.0))
    return sorted(found, key=lambda one: -one.seconds)


def time_of(line: re.Match[str]) -> OperatorTime:
    """Return the time of one primitive; oneDNN counts milliseconds."""
    kind, sizes = line["kind"], line["sizes"]
    weights = WEIGHTS.search(line[0])
    types = [ONEDNN.get(one, one) for one in (line["source"], weights[1] if weights else "f32")]
    shapes = shapes_of(sizes)
    inputs = [Tensor(shape, one) for shape, one in zip(shapes[:-1], types, strict=True)]
    outputs = [Tensor(shapes[-1], ONEDNN.get(line["result"], line["result"]))]
    group = "products" if kind in ("matmul", "inner_product", "convolution") else None
    return operator_time(
        f"{kind} {sizes}", kind, float(line["ms"]) / 1e3, inputs, outputs, group=group
    )


def shapes_of(sizes: str) -> list[tuple[int, ...]]:
    """Return the shapes of source, weights and result of a primitive, by oneDNN's sizes.

    `64x384:384x384` are two factors; `mb64ic384oc384` names the axes of a linear layer or, with
    `kh` and `kw`, of a convolution.
    """
    if ":" in sizes:
        left, right = (tuple(map(int, part.split("x"))) for part in sizes.split(":")[:2])
        return [left, right, (*left[:-1], right[-1])]
    named = {name: int(value) for name, value in NAMED.findall(sizes)}
    rows, channels, results = (named.get(name, 1) for name in ("mb", "ic", "oc"))
    if "kh" not in named:
        return [(rows, channels), (channels, results), (rows, results)]
    per_group = channels // named.get("g", 1)
    return [
        (rows, channels, named["ih"], named["iw"]),
        (results, per_group, named["kh"], named["kw"]),
        (rows, results, named["oh"], named["ow"]),
    ]

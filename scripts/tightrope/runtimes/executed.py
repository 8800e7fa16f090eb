"""Count the operators that an engine executes, and check its precision by them."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from tightrope.errors import WorkFailed
from tightrope.variants import GIVEN, UNQUANTIZED

# operator class -> precision -> count
Executed = dict[str, dict[str, int]]
PRODUCTS = ("attention", "conv", "dense", "fullyconnected", "gemm", "linear", "matmul", "product")
# PyTorch's addmm, bmm, _int_mm, _scaled_mm, and Triton's templates of them
MATRICES = re.compile(r"mm(?:_|\d|$)")
# classes that only convert types: Convert, QuantizeLinear, DynamicQuantizeLinear
CONVERSIONS = ("convert", "quantizelinear")
# the types of a file that is quantized already: one of them in nearly every file
GIVEN_TYPES = ("int8", "fp8")
KNOWN = (*UNQUANTIZED, *GIVEN_TYPES)


def counted(operators: Iterable[tuple[str, str]]) -> Executed:
    """Count operator classes and precisions, sorted."""
    found: dict[str, Counter[str]] = {}
    for kind, precision in operators:
        found.setdefault(kind, Counter())[precision] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in sorted(found.items())}


def is_product(kind: str) -> bool:
    """Return whether a class of operators is a matrix product, where most time is spent."""
    name = kind.casefold()
    if any(word in name for word in CONVERSIONS):
        return False
    return any(word in name for word in PRODUCTS) or MATRICES.search(name) is not None


def as_tf32(executed: Executed) -> Executed:
    """Return `executed` with fp32 named tf32, for a GPU that rounds product operands to TF32."""
    return {
        kind: {"tf32" if name == "fp32" else name: count for name, count in counts.items()}
        for kind, counts in executed.items()
    }


def products_in(executed: Mapping[str, Mapping[str, int]], precision: str) -> tuple[int, int]:
    """Return how many matrix products ran in `wanted_types` of a precision, and how many ran."""
    wanted = wanted_types(precision)
    products = [counts for kind, counts in executed.items() if is_product(kind)]
    ran = sum(one.get(name, 0) for one in products for name in wanted)
    return ran, sum(sum(one.values()) for one in products)


def wanted_types(precision: str) -> tuple[str, ...]:
    """Return the types in which products of a variant with that precision are to run.

    For `int8-bf16` and `int8-dynamic` that is int8, for `given` int8 and fp8.
    """
    return GIVEN_TYPES if precision == GIVEN else (precision.partition("-")[0],)


def share_of_products(executed: Executed, precision: str) -> float:
    """Return the share of the matrix products that ran in the precision; 0 where none ran."""
    ran, every = products_in(executed, precision)
    return ran / every if every else 0.0


def unknown_types(executed: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the types of matrix products whose names are none of ours, sorted.

    A runtime of another version may spell them otherwise, or call products otherwise.
    """
    found = {name for kind, counts in executed.items() if is_product(kind) for name in counts}
    return sorted(found - {*KNOWN}) if found else ["no matrix product"]


def require_precision(executed: Executed, precision: str) -> None:
    """Raise WorkFailed where all matrix products ran in known types, and none in the precision."""
    if products_in(executed, precision)[0] or unknown_types(executed):
        return
    wanted = " or ".join(wanted_types(precision))
    ran = {name for kind, counts in executed.items() if is_product(kind) for name in counts}
    words = ", ".join(sorted(ran))
    raise WorkFailed(f"ran in {words}: no matrix product ran in {wanted}", transient=False)

"""Count the operators that an engine executes, and check its precision by them."""

from collections import Counter
from collections.abc import Iterable

from tightrope.errors import WorkFailed

# operator class -> precision -> count
Executed = dict[str, dict[str, int]]
PRODUCTS = ("attention", "conv", "dense", "fullyconnected", "gemm", "linear", "matmul", "product")
# classes that only convert types: Convert, QuantizeLinear, DynamicQuantizeLinear
CONVERSIONS = ("convert", "quantizelinear")


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
    return any(word in name for word in PRODUCTS)


def as_tf32(executed: Executed) -> Executed:
    """Return `executed` with fp32 named tf32, for a GPU that rounds product operands to TF32."""
    return {
        kind: {"tf32" if name == "fp32" else name: count for name, count in counts.items()}
        for kind, counts in executed.items()
    }


def require_precision(executed: Executed, precision: str) -> None:
    """Raise WorkFailed unless a matrix product ran in the first precision of the variant's name.

    For `int8-bf16` and `int8-dynamic` that is int8.
    """
    wanted = precision.partition("-")[0]
    ran = {name for kind, counts in executed.items() if is_product(kind) for name in counts}
    if wanted not in ran:
        words = ", ".join(sorted(ran)) or "nothing known"
        raise WorkFailed(f"ran in {words}: no matrix product ran in {wanted}", transient=False)

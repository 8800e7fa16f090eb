"""Whether the predictions of a quantized engine have collapsed, and which tensor is at fault."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tightrope.statistics import share

# share of a single class from which predictions are collapsed, unless float also reaches it
CONSTANT = 0.98
# agreement with float from which an engine passes, even if float itself is close to a threshold
MOSTLY = 0.9
Noise = Callable[[], list[dict[str, Any]]]


def collapsed(
    found: Sequence[int], expected: Sequence[int], labels: Sequence[int], noise: Noise | None
) -> dict[str, Any] | None:
    """Return `reason` and `tensors` where predictions have collapsed, None where they have not.

    `expected` are those of float for the same examples; of the longer ones the first count.
    `noise` returns what `quantization_noise` does, None for an engine that quantizes itself, whose
    `tensors` are empty.
    """
    count = min(len(found), len(expected))
    reason = collapse(found[:count], expected[:count], labels[:count]) if count else None
    if reason is None:
        return None
    tensors = noise() if noise else []
    return {"reason": f"collapsed: {reason}; {fault(tensors)}", "tensors": tensors}


def collapse(found: Sequence[int], expected: Sequence[int], labels: Sequence[int]) -> str | None:
    """Return why the predictions have collapsed, None where they have not.

    They are one answer to almost all examples, or no better than chance, the most frequent label,
    while those of float surely are.
    """
    count = len(labels)
    if right(found, expected) >= MOSTLY * count:
        return None
    if commonest(found) >= CONSTANT * count > commonest(expected):
        return f"one answer to {100 * commonest(found) / count:.0f} % of {count} examples"
    own, float_ = (share(right(answers, labels), count) for answers in (found, expected))
    chance = commonest(labels) / count
    if float_.low > chance >= own.low:
        return (
            f"accuracy {100 * own.value:.0f} % of {count} examples, {100 * float_.value:.0f} % in "
            f"float, {100 * chance:.0f} % by chance"
        )
    return None


def right(found: Sequence[int], expected: Sequence[int]) -> int:
    """Return how many are equal."""
    return sum(one == other for one, other in zip(found, expected, strict=True))


def commonest(values: Sequence[int]) -> int:
    """Return how often the most frequent value occurs."""
    return max(Counter(values).values())


def fault(tensors: list[dict[str, Any]]) -> str:
    """Describe the operator and tensor at fault: the noisiest with a finding, else the noisiest."""
    if not tensors:
        return "this engine quantizes itself, so the operator at fault is not known"
    worst = next((one for one in tensors if one["findings"]), tensors[0])
    words = (
        "; ".join(worst["findings"]) or f"{worst['sqnr_db']:.0f} dB above its quantization noise"
    )
    return f"at fault: operator {worst['operator']}, tensor {worst['tensor']}: {words}"

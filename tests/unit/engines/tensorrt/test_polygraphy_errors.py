"""The reason of a failed build is what TensorRT said first, not that it failed."""

import pytest
from tightrope.errors import WorkFailed
from tightrope.jobs.child import Limits, supervised

LIMITS = Limits(memory_bytes=8e9, seconds=60)
INVALID = "Invalid Engine. Please ensure the engine was built correctly"


def build(said: list[str], ends: bool = True) -> int:
    """In a child, which alone loads Polygraphy."""
    from polygraphy.logger import G_LOGGER
    from tightrope.engines.tensorrt_errors import with_reasons

    with with_reasons():
        for words in said:
            G_LOGGER.error(words)
        if ends:
            G_LOGGER.critical(INVALID)
    return 1


@pytest.mark.parametrize(
    ("said", "reason", "transient"),
    [
        (["Error Code 4: no layer\nmore", "then this"], "TensorRT: Error Code 4: no layer", False),
        (["Error Code 9: skipped", "Error Code 2: OutOfMemory"], "TensorRT: Error Code 9", True),
    ],
)
def test_the_first_error_is_the_reason(said: list[str], reason: str, transient: bool) -> None:
    with pytest.raises(WorkFailed, match=f"^{reason}") as caught:
        supervised(build, said, limits=LIMITS)
    assert caught.value.transient is transient
    assert "\n" not in caught.value.reason


def test_an_error_that_ended_nothing_is_no_failure() -> None:
    tried = ["a try that TensorRT gave up before it took another"]
    assert supervised(build, tried, False, limits=LIMITS) == 1

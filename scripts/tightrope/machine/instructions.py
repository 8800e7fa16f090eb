"""Which instructions a precision needs of a processor that computes in it."""

from typing import Any

from tightrope.engine_table import ENGINES, INSTRUCTIONS
from tightrope.variants import Variant


def missing_instructions(variant: Variant, host: dict[str, Any]) -> str | None:
    """Why a CPU like `host` would only emulate that variant, None where it computes in it."""
    number = variant.precision.removeprefix("int8-")
    used = (ENGINES[variant.engine].instructions or {}).get(number, ())
    if variant.device != "cpu" or not used or set(used) & set(host["isa"]):
        return None
    other = f" that {variant.engine} uses" if set(INSTRUCTIONS[number]) & set(host["isa"]) else ""
    return f"this CPU has no {number} instructions{other}: it would be emulated"

"""CPU instructions that a precision needs to run natively."""

from typing import Any

from tightrope.engine_table import ENGINES, INSTRUCTIONS
from tightrope.variants import Variant


def missing_instructions(variant: Variant, host: dict[str, Any]) -> str | None:
    """Return why a CPU like `host` would only emulate `variant`, None where it runs natively."""
    number = variant.precision.removeprefix("int8-")
    used = (ENGINES[variant.engine].instructions or {}).get(number, ())
    if variant.device != "cpu" or not used or set(used) & set(host["isa"]):
        return None
    other = f" that {variant.engine} uses" if set(INSTRUCTIONS[number]) & set(host["isa"]) else ""
    return f"not supported by this CPU: no {number} instructions{other}; it would be emulated"

"""How numbers of a decision are written."""


def number(value: float) -> str:
    """Format a number with three significant digits, without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def milliseconds(seconds: float) -> str:
    """Format seconds in milliseconds with three significant digits."""
    return f"{number(1e3 * seconds)} ms"

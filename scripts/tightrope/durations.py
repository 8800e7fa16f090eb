"""Durations as text."""


def in_words(seconds: float) -> str:
    """Format seconds as 0.4 s, 42 s, 3 min or 1 h 20 min."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

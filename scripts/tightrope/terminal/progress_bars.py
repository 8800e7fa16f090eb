"""Progress of a long step, from the last progress bar in its log."""

import os
import re
from pathlib import Path
from typing import NamedTuple

TAIL_BYTES = 4096
# a tqdm bar: `predicting:  40%|####      | 12/30 [00:08<00:12,  1.49chunk/s]`
BAR = re.compile(
    r"(?P<what>[^:\r\n|]+):\s+(?P<percent>\d+)%\|[^|]*\| *(?P<count>[\d.]+[kMG]?/[\d.]+[kMG]?)"
    r" \[[\d:]+<(?P<left>[\d:]+|\?)"
)


class Progress(NamedTuple):
    """Progress of a step in words, and the remaining seconds if known."""

    words: str
    left: float | None


def progress_in(path: Path | str, *, since: float = 0.0) -> Progress | None:
    """Return the progress from the last bar in the log: `predicting 40 %, 0:12 left`.

    None if the log has no bar, if its last bar is full (another step has begun), or if it was last
    written before `since` (`time.time()`), by an earlier run.
    """
    try:
        with Path(path).open("rb") as stream:
            if os.fstat(stream.fileno()).st_mtime < since:
                return None
            size = stream.seek(0, 2)
            stream.seek(max(0, size - TAIL_BYTES))
            tail = stream.read().decode(errors="replace")
    except OSError:
        return None
    bars = list(BAR.finditer(tail))
    if not bars or bars[-1]["percent"] == "100":
        return None
    what, percent, left = bars[-1]["what"].strip(), bars[-1]["percent"], bars[-1]["left"]
    words = f"{what} {percent} %"
    if left == "?":
        return Progress(words, None)
    return Progress(f"{words}, {left.removeprefix('0')} left", seconds_of(left))


def seconds_of(clock: str) -> float:
    """Convert `1:02:03` or `02:03` to seconds."""
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return float(seconds)

"""Draw the latencies of recommended variants over time: trend_page.py history trend.html.

`history` is a folder of summaries, of any names. docs/ci.md says what a step is. Exit code 2 where
there is nothing to draw.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tightrope.artifacts.files import write_bytes
from tightrope.compare.command import OneLineParser, run
from tightrope.compare.history import all_series, read_history
from tightrope.compare.trend import trend_page


def main(arguments: list[str]) -> int:
    """Read the folder and write the page; return the exit code. Raises TightropeError."""
    parser = OneLineParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("history", type=Path, metavar="FOLDER")
    parser.add_argument("page", type=Path, metavar="PAGE")
    words = parser.parse_args(arguments)
    reports = read_history(words.history)
    found = all_series(reports)
    write_bytes(words.page, trend_page(words.history, reports, found).encode())
    count = sum(len(one.steps) for one in found)
    print(f"{words.page}: {len(reports)} reports, {len(found)} series, {count} steps")
    return 0


if __name__ == "__main__":
    run(main)

"""Compare two reports: compare_reports.py old/summary.json new/summary.json --fail-on slower:3%.

docs/ci.md says what is compared and which figure decides. Exit code 1 where a bound is broken, 2
where the two cannot be compared.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tightrope.artifacts.files import write_bytes
from tightrope.compare.bounds import OneLineParser, broken, parse_bound, run
from tightrope.compare.compare import compare
from tightrope.compare.formats import as_markdown, as_text, comparison_page
from tightrope.compare.read import read_report
from tightrope.compare.remeasure import remeasure
from tightrope.compare.sections import heading, sections

BROKEN = 1


def words_of(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; raise TightropeError."""
    parser = OneLineParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path, metavar="OLD", help="the earlier summary.json")
    parser.add_argument("new", type=Path, metavar="NEW", help="the later summary.json")
    parser.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="BOUND",
        help="slower:3%%, accuracy:0.5 (points) or gone; may be given several times",
    )
    parser.add_argument("--across-hosts", action="store_true", help="compare different hosts")
    parser.add_argument(
        "--remeasure",
        action="store_true",
        help="time old and new engines side by side, where both are beside their reports",
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--html", type=Path, metavar="FILE")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Compare, write and print; return the exit code. Raises TightropeError."""
    words = words_of(arguments)
    bounds = [parse_bound(one) for one in words.fail_on]
    old, new = read_report(words.old), read_report(words.new)
    comparison = compare(
        old, new, across_hosts=words.across_hosts, again=remeasure if words.remeasure else None
    )
    found = broken(comparison, bounds)
    parts = sections(comparison, bounds, found)
    if words.markdown:
        write_bytes(words.markdown, as_markdown(heading(comparison), parts).encode())
    if words.html:
        write_bytes(words.html, comparison_page(comparison, heading(comparison), parts).encode())
    print(as_text(heading(comparison), parts), end="")
    return BROKEN if found else 0


if __name__ == "__main__":
    run(main)

"""Compare two reports: compare_reports.py old/summary.json new/summary.json --fail-on slower:3%.

docs/ci.md says what is compared and which figure decides. Exit code 1 where a bound is broken, 2
where the two cannot be compared.
"""

import argparse
import sys
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tightrope.artifacts.files import write_bytes
from tightrope.compare import sections
from tightrope.compare.compare import compare
from tightrope.compare.read import read_report
from tightrope.compare.remeasure import remeasure
from tightrope.errors import TightropeError

BROKEN, REFUSED = 1, 2


def refuse(message: str) -> NoReturn:
    """Raise TightropeError: errors of the command line are one line, as all others are."""
    raise TightropeError(f"{message}; --help says more")


def main(arguments: list[str]) -> int:
    """Compare, write and print; return the exit code, with a line for what is refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.error = refuse
    parser.add_argument("old", type=Path, metavar="OLD", help="the earlier summary.json")
    parser.add_argument("new", type=Path, metavar="NEW", help="the later summary.json")
    bounds = "slower:3%%, accuracy:0.5 (points) or gone; may be given several times"
    parser.add_argument("--fail-on", action="append", default=[], metavar="BOUND", help=bounds)
    parser.add_argument("--across-hosts", action="store_true", help="compare different hosts")
    beside = "time old and new engines side by side, where both are beside their reports"
    parser.add_argument("--remeasure", action="store_true", help=beside)
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument("--html", type=Path, metavar="FILE")
    try:
        words = parser.parse_args(arguments)
        bounds = [sections.parse_bound(one) for one in words.fail_on]
        old, new = read_report(words.old), read_report(words.new)
        again = remeasure if words.remeasure else None
        comparison = compare(old, new, across_hosts=words.across_hosts, again=again)
        broken = sections.broken(comparison, bounds)
        parts = sections.heading(comparison), sections.sections(comparison, bounds, broken)
        if words.markdown:
            write_bytes(words.markdown, sections.as_markdown(*parts).encode())
        if words.html:
            write_bytes(words.html, sections.comparison_page(comparison, *parts).encode())
    except TightropeError as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED
    print(sections.as_text(*parts), end="")
    return BROKEN if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

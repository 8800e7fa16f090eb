"""Print the bundles of the recommended variants: recommended.py [reports/summary.json].

`make bundle` passes them to Snakemake. `--form triton` are those for Triton.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tightrope.errors import TightropeError
from tightrope.summary.document import Summary, read_summary

FORMS = {"python": "", "triton": ".triton"}


def bundles(summary: Summary, form: str) -> list[str]:
    """Return the paths, each once, in the order of the recommendations."""
    chosen = ((one.model, one.variant) for one in summary.recommendations)
    paths = (
        f"artifacts/{model}/bundle/{variant}{FORMS[form]}.tar.gz"
        for model, variant in chosen
        if variant is not None
    )
    return list(dict.fromkeys(paths))


def main() -> None:
    """Print the paths; end with one line where there are none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("summary", type=Path, nargs="?", default=Path("reports/summary.json"))
    parser.add_argument("--form", choices=FORMS, default="python")
    words = parser.parse_args()
    try:
        paths = bundles(read_summary(words.summary), words.form)
    except TightropeError as error:
        sys.exit(str(error))
    if not paths:
        sys.exit(f"{words.summary}: no variant is recommended; the report says why")
    print("\n".join(paths))


if __name__ == "__main__":
    main()

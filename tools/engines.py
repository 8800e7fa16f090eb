"""Write the table of engines into README.md, from their SPECs: `make schema`.

With --check, end with an error where the page has another table.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from tightrope.engine_table import ENGINES  # noqa: E402 - where it is, is above

PAGE = ROOT / "README.md"
BEGIN, END = "<!-- engines: make schema -->\n", "<!-- end of engines -->\n"
HEADER = "| engine | on a CPU | on a GPU | what it is |\n| --- | --- | --- | --- |\n"


def table() -> str:
    """Return a row per engine in Markdown: its precisions on each device, and what it is."""
    rows = [
        [f"`{name}`", *(", ".join(one.precisions.get(of, ())) for of in ("cpu", "cuda")), one.about]
        for name, one in ENGINES.items()
    ]
    return HEADER + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> None:
    """Write the table, or compare it."""
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    text = f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"
    if "--check" not in sys.argv:
        PAGE.write_text(text)
    elif text != page:
        sys.exit(f"{PAGE.name} has another table of engines: run `make schema`")


if __name__ == "__main__":
    main()

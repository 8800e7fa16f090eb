"""Lines and modules of each package against the budgets in pyproject.toml.

    python tools/size.py            print the table; end with an error above a budget
    python tools/size.py --write    write it into docs/architecture.md as well

`make lint` runs `--check`, which says only what is above its budget. A budget may be lowered by
anybody; raising one needs its reason in the commit.
"""

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
BEGIN, END = "<!-- sizes: python tools/size.py --write -->\n", "<!-- end of sizes -->\n"
LIBRARY = "scripts/tightrope"
HEADER = ("of", "lines", "budget", "files", "budget", "longest")
Row = tuple[str, int, int | None, int, int | None, str]


def rows(files: dict[str, int], budgets: dict[str, dict[str, int]]) -> Iterator[Row]:
    """Yield a row for each budget, and one for each package of the library."""
    for name, budget in budgets.items():
        yield row(name, of_patterns(files, budget["files"]), budget["lines"], budget["most_files"])
    packages = {path.split("/")[2] for path in files if path.startswith(f"{LIBRARY}/")}
    for package in sorted(one for one in packages if "." not in one):
        inside = {path: n for path, n in files.items() if path.startswith(f"{LIBRARY}/{package}/")}
        yield row(f"`{package}`", {p: n for p, n in inside.items() if p.endswith(".py")})


def row(name: str, files: dict[str, int], lines: int | None = None, most: int | None = None) -> Row:
    """Return the row of these files."""
    longest = max(files, key=files.__getitem__, default="")
    words = f"{longest.removeprefix(f'{LIBRARY}/')} {files.get(longest, 0)}"
    return name, sum(files.values()), lines, len(files), most, words


def of_patterns(files: dict[str, int], patterns: list[str]) -> dict[str, int]:
    """Return the files that a pattern fits and none that begins with `!`."""
    wanted = [one for one in patterns if not one.startswith("!")]
    left_out = [one[1:] for one in patterns if one.startswith("!")]
    return {
        path: count
        for path, count in files.items()
        if any(fnmatchcase(path, one) for one in wanted)
        and not any(fnmatchcase(path, one) for one in left_out)
    }


def lines_of_files() -> dict[str, int]:
    """Return the number of lines of each text file that is in git."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    paths = [path for path in listed.stdout.decode().split("\0") if path and (ROOT / path).exists()]
    return {path: (ROOT / path).read_bytes().count(b"\n") for path in paths}


def table(found: list[Row]) -> str:
    """Format rows as a table in Markdown."""
    lines = ["| " + " | ".join(HEADER) + " |", "| --- " + "| ---: " * 4 + "| --- |"]
    for one in found:
        cells = [
            "" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell for cell in one
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def with_table(page: str, text: str) -> str:
    """Return the page with the table between its two marks."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Print or write the table; end with an error above a budget."""
    parser = argparse.ArgumentParser(description="Lines and modules against their budgets.")
    parser.add_argument("--write", action="store_true", help="write the table into the page")
    parser.add_argument("--check", action="store_true", help="say only what is wrong")
    words = parser.parse_args()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["tightrope"]["sizes"]
    found = list(rows(lines_of_files(), settings))
    text = table(found)
    if not words.check:
        print(text, end="")
    if words.write:
        PAGE.write_text(with_table(PAGE.read_text(), text))
    wrong = [
        f"{name}: {count:,} {unit}, the budget is {budget:,}: take something away"
        for name, lines, most_lines, files, most_files, _ in found
        for count, budget, unit in ((lines, most_lines, "lines"), (files, most_files, "files"))
        if budget is not None and count > budget
    ]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()

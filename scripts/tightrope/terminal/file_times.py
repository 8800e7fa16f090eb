"""What Snakemake says of files that it does not see, or whose times contradict each other.

These are its words of several lines, on the machine of the run or in the log of a node; the user
gets one line that names the setting to change.
"""

import re
from typing import NamedTuple

UNSEEN = re.compile(r"Missing files after (?P<seconds>\d+) seconds\.")
# the files that follow, one a line
FILE = re.compile(r"^(?P<path>\S+) \(missing ", re.MULTILINE)
OLDER = re.compile(
    r"Output (?P<output>.+?) has older modification time \((?P<made>[^)]+)\) "
    r"than input (?P<input>.+?) \((?P<newer>[^)]+)\)\."
)


class Refusal(NamedTuple):
    """The files for which Snakemake does not accept a job, and the reason in one line.

    `newer` is the input that is newer than they are, where that is the reason.
    """

    files: list[str]
    reason: str
    newer: str | None = None


def refusal_in(text: str) -> Refusal | None:
    """Return the last refusal of that kind in the text, None where there is none."""
    unseen, older = list(UNSEEN.finditer(text)), list(OLDER.finditer(text))
    if older:
        return contradicting(older[-1])
    return not_seen(unseen[-1], text[unseen[-1].end() :]) if unseen else None


def not_seen(found: re.Match[str], rest: str) -> Refusal | None:
    """Return the refusal for files that did not appear; `rest` is the text that lists them."""
    files = [one["path"] for one in FILE.finditer(rest)]
    if not files:
        return None
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return Refusal(
        files,
        f"{files[0]}{more}: not seen within {found['seconds']} s after the job that writes it; "
        "where the file system is slow, raise latency-wait in profiles/slurm/config.yaml, or say "
        "--latency-wait SECONDS, and run again",
    )


def contradicting(found: re.Match[str]) -> Refusal:
    """Return the refusal for an output that seems older than an input of its job."""
    return Refusal(
        [found["output"]],
        f"{found['input']}: its time {seconds_of(found['newer'])} is later than that of "
        f"{found['output']}, which was made from it ({seconds_of(found['made'])}), so a clock is "
        f"wrong; set the clocks of all machines (NTP), say: touch {found['input']}, and run again",
        found["input"],
    )


def seconds_of(time: str) -> str:
    """Return a time without its fraction of a second."""
    return time.partition(".")[0]

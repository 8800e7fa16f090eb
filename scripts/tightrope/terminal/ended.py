"""Why jobs ended, as Snakemake reports it: the words of the job, of the system or a scheduler.

Of files that it does not see, or whose times contradict each other, it says several lines, here or
in the log of a node: the user gets one that names the setting to change.
"""

import logging
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.artifacts.failures import LARGEST_BYTES, REASON, failure_in, is_onnx_file
from tightrope.errors import ArtifactError, TightropeError

LOGGER = "snakemake.logging"
RECORDS = (".json", ".onnx")
# what Snakemake says of a job that a signal ended
KILLED = re.compile(r"died with <Signals\.(\w+): \d+>")
# last line of a Python traceback
RAISED = re.compile(r"^[\w.]*[A-Za-z]\w*(Error|Exception|Interrupt|Exit)\b.*$")
UNSEEN = re.compile(r"Missing files after (?P<seconds>\d+) seconds\.")
# the files that follow, one a line
FILE = re.compile(r"^(?P<path>\S+) \(missing ", re.MULTILINE)
OLDER = re.compile(
    r"Output (?P<output>.+?) has older modification time \((?P<made>[^)]+)\) "
    r"than input (?P<input>.+?) \((?P<newer>[^)]+)\)\."
)
# what Snakemake puts after the name of a file in storage
IN_STORAGE = " (send to storage)"
# the largest log that is fetched, in bytes: others may write in storage too
LARGEST_LOG = 2**26
# where the file is that Snakemake calls so, fetched where it has at most so many bytes
Files = Callable[[str, int], AbstractContextManager[Path]]
# what Snakemake adds to the words of a scheduler: a command of some kilobytes, where else to look
LOOK_ELSEWHERE = re.compile(r"\s*(sbatch call:|For further error details see the).*$", re.DOTALL)
# words of sbatch, in small letters, that refuse a job, and the value of a profile that decides it
ABOUT = {
    "feature specification": "`constraint`, or that of the host under `hosts`",
    "account": "`account`",
    "partition": "`partition`",
    "memory specification": "`node_mb`",
    "node configuration is not available": "`cores` and `node_mb`",
    "time limit": "`longest_minutes`",
}


class EndedJobs(logging.Handler):
    """Snakemake log handler that keeps why each job ended.

    `reasons` are by number of the job, or by output where Snakemake refused it and gives no number.
    `ahead` are inputs that are newer than what was made from them.
    """

    def __init__(self, workflow: Any) -> None:
        """Listen to what Snakemake says of a workflow."""
        super().__init__()
        stored = workflow.storage_settings.default_storage_provider is not None
        provider = workflow.storage_registry.default_storage_provider if stored else None
        self.files, self.exception = partial(fetched, provider), ""
        self.reasons: dict[int | str, str] = {}
        self.ahead: set[str] = set()
        logging.getLogger(LOGGER).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason of a job that ended with an error; an error here never ends the run."""
        facts = record.__dict__
        try:
            if str(facts.get("event")) == "error":
                refusal = refusal_in(str(facts["msg"]))
                self.exception = "" if refusal else str(facts["msg"])
                if refusal:
                    self.reasons |= dict.fromkeys(refusal.files, refusal.reason)
                    self.ahead.update(filter(None, [refusal.newer]))
            elif str(facts.get("event")) == "job_error":
                for path in facts.get("output", ()):  # of an attempt before this one
                    self.reasons.pop(path, None)
                self.reasons[facts["jobid"]] = reason_of_error(facts, self.exception, self.files)
                self.exception = ""
        except Exception:
            self.handleError(record)

    def reason_of(self, number: int, outputs: list[str]) -> str:
        """Return why the job with this number and these outputs ended."""
        found = (self.reasons[key] for key in (*outputs, number) if key in self.reasons)
        return next(found, "ended without a reason")


class Refusal(NamedTuple):
    """The files for which Snakemake does not accept a job, and the reason in one line.

    `newer` is the input that is newer than they are, where that is the reason.
    """

    files: list[str]
    reason: str
    newer: str | None = None


def refusal_in(text: str) -> Refusal | None:
    """Return the last refusal in the text, None where there is none.

    It is of an output that seems older than an input of its job, else of files that did not appear.
    """
    unseen, older = [*UNSEEN.finditer(text)], [*OLDER.finditer(text)]
    if older:
        output, newer = older[-1]["output"], older[-1]["input"]
        times = [older[-1][name].partition(".")[0] for name in ("newer", "made")]
        reason = (
            f"{newer}: its time {times[0]} is later than that of {output}, which was made from it "
            f"({times[1]}), so a clock is wrong; set the clocks of all machines (NTP), say: touch "
            f"{newer}, and run again"
        )
        return Refusal([output], reason, newer)
    files = [one["path"] for one in FILE.finditer(text, unseen[-1].end())] if unseen else []
    if not files:
        return None
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    reason = (
        f"{files[0]}{more}: not seen within {unseen[-1]['seconds']} s after the job that writes "
        "it; where the file system is slow, raise latency-wait in profiles/slurm/config.yaml, or "
        "say --latency-wait SECONDS, and run again"
    )
    return Refusal(files, reason)


@contextmanager
def fetched(provider: Any, file: str, largest: int) -> Iterator[Path]:
    """Yield where a file is, fetched from storage for as long as it is used.

    It is the local copy where that is newer: of a job that ended here only the copy is of its last
    attempt. There may be no file there: neither, or an object of more than `largest` bytes.
    """
    if provider is None or not file.endswith(IN_STORAGE):
        yield Path(file)
        return
    stored = provider.object(name_of(file))
    copy = Path(stored.local_path())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder, copy.name)
        try:
            stored.set_local_path(path)
            newer = copy.is_file() and copy.stat().st_mtime > stored.mtime()
            if not stored.exists() or newer:
                path = copy
            elif stored.size() <= largest:
                stored.retrieve_object()
        except Exception:  # of any storage; it must not hide how a job ended
            path = copy
        yield path


here: Files = partial(fetched, None)


def name_of(file: str) -> str:
    """Return the name of a file that Snakemake tells of."""
    return file.removesuffix(IN_STORAGE)


def failure_of(outputs: Iterable[str], files: Files = here) -> str | None:
    """Return why the first output that records a failure failed, fit for a terminal, or None."""
    for output in outputs:
        name = name_of(output)
        if not name.endswith(RECORDS):
            continue
        with files(output, LARGEST_BYTES) as path:
            if not path.is_file() or path.stat().st_size > LARGEST_BYTES:
                continue
            if is_onnx_file(path) and REASON.encode() not in path.read_bytes():
                continue  # importing the library that reads it takes long
            try:
                failure = failure_in(path)
            except ArtifactError as error:
                failure = {"reason": str(error)}
        if failure is not None:
            return str(TightropeError(failure["reason"].replace(str(path), name)))
    return None


def reason_of_error(facts: Mapping[str, Any], exception: str, files: Files) -> str:
    """Return one line on why a job ended: from its log, with a scheduler's words, or `exception`.

    `facts` are those of Snakemake's event `job_error`, `exception` what it said before.
    """
    said = " ".join(LOOK_ELSEWHERE.sub("", facts["rule_msg"] or "").split())
    number, (own, *others) = facts["aux"].get("external_jobid"), [*facts["log"]] or [""]
    with files(own, LARGEST_LOG) as path:
        words = reason_in_log(path)
    if number is None and not said:
        lines = [line.strip() for line in exception.splitlines() if line.strip()]
        last = lines[-1] if lines else "ended with an error and left no reason"
        if killed := KILLED.search(last):
            last = f"killed by {killed[1]} (out of memory, or from outside)"
        # without the command line, which does not explain the error
        return words or re.sub(r"^Command .* (?=returned non-zero)", "", last)
    about = [one for words, one in ABOUT.items() if "sbatch" in said and words in said.lower()]
    said += f" Set {about[0]}: see profiles/README.md" if about else ""
    said = said or f"job {number} of the scheduler failed"
    # in the others is why Snakemake on the node refused files
    texts = [Path(log).read_text(errors="replace") for log in others if Path(log).is_file()]
    refused = [refusal.reason for refusal in map(refusal_in, texts) if refusal]
    words = words or next(iter(refused), None)
    return f"{words} ({said})" if words else said


def reason_in_log(path: Path) -> str | None:
    """Return the error that ended a script, or a job on a node, fit for a terminal, or None."""
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return None
    if refusal := refusal_in(text):
        return refusal.reason
    for line in reversed(text.splitlines()):
        if line.startswith("error: ") or RAISED.match(line):
            return str(TightropeError(line.removeprefix("error: ")))
    return None

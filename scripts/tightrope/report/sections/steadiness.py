"""How steady the measurements were: remarks on each row, and how many rows have which."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tightrope.report.style.numbers import is_number

Record = Mapping[str, Any]


class Remark(NamedTuple):
    """A word that marks a row, and what it means there, in sentences."""

    word: str
    reasons: list[str]


def remarks(result: Record, row: Record) -> list[Remark]:
    """What a reader must know of one latency row; empty for a steady one.

    The words are `disturbed` or `provisional`, `noisy`, `time limit` and `threads`.
    """
    found = []
    if row.get("disturbed"):
        word = "provisional" if row.get("provisional") else "disturbed"
        found.append(Remark(word, [row["disturbed"]]))
    if row.get("noisy"):
        found.append(Remark("noisy", list(row.get("noise") or ["no reason was recorded"])))
    if row.get("stop") == "time limit":
        found.append(Remark("time limit", [late(row)]))
    if words := other_threads(result, row):
        found.append(Remark("threads", [words]))
    return found


def disturbed_section(summary: Record) -> dict[str, Any] | None:
    """What other load left without a number; None where nothing was disturbed.

    `rows` are latencies and `races` those without a winner; `undecided` is whether they could
    change the decision at some shape. `what` says of all kinds of measurements how many, `reasons`
    why, each once.
    """
    results, traffic = (summary.get(kind) or () for kind in ("results", "traffic"))
    rows = [row for result in results for row in result.get("latency") or ()]
    tests = [row for entry in traffic for row in entry.get("rows") or ()]
    without, tested, trained = (
        [one for one in kind if one.get("disturbed")]
        for kind in (rows, tests, summary.get("training") or ())
    )
    races = [one for one in summary.get("races") or () if one.get("status") == "disturbed"]
    counted = (
        (without, f"{len(without)} of {len(rows)} latencies"),
        (races, f"the decision at {plural(len(races), 'shape')}"),
        (tested, f"{plural(len(tested), 'row')} of real traffic"),
        (trained, plural(len(trained), "training")),
    )
    marked = without + tested + trained
    told = [one["disturbed"] for one in marked] + [race.get("reason") for race in races]
    if not told:
        return None
    return {
        "rows": len(without),
        "races": len(races),
        "undecided": any(one.get("provisional") for one in summary.get("recommendations") or ()),
        "what": [words for found, words in counted if found],
        "provisional": any(one.get("provisional") for one in marked),
        "reasons": list(dict.fromkeys(filter(None, told))),
    }


def plural(count: int, word: str) -> str:
    """ "1 shape", "2 shapes"."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def late(row: Record) -> str:
    """What it means that measuring ended at the time limit; a baseline alone has no interval."""
    if row.get("speedup"):
        return "stopped at the time limit: the interval is wider than asked for"
    return "stopped at the time limit, with fewer quiet pairs of blocks than asked for"


def other_threads(result: Record, row: Record) -> str | None:
    """That another number of threads worked than configured; None where it is as it should be.

    Only on a CPU: what drives a GPU needs one thread.
    """
    asked, busy = result.get("threads"), row.get("threads_busy")
    if result.get("device") != "cpu" or not is_number(asked) or not is_number(busy):
        return None
    if busy > asked:
        return f"kept {busy} threads busy, {asked} were configured"
    return f"kept {busy} of {asked} threads busy" if busy < asked else None


def steadiness(results: Iterable[Record]) -> dict[str, Any] | None:
    """How many latency rows have which remark; None where noise was not judged.

    `rows`, `noisy`, `late` (None where no row says that it could have stopped late), `disturbed`
    (pairs of blocks that other load disturbed), `spread` (the most that the baseline's time
    differed from job to job, a fraction), `thread_rows`, and `threads`: (words, variants) pairs.
    """
    rows = [(result, row) for result in results for row in result.get("latency") or ()]
    if not any("noisy" in row for _, row in rows):
        return None
    threads: dict[str, list[Any]] = {}
    for result, row in rows:
        if words := other_threads(result, row):
            threads.setdefault(words, []).append(result.get("variant"))
    stops = [row["stop"] for _, row in rows if row.get("stop") not in (None, "calls")]
    return {
        "rows": len(rows),
        "noisy": sum(bool(row.get("noisy")) for _, row in rows),
        "late": stops.count("time limit") if stops else None,
        "disturbed": sum(row.get("disturbed_pairs") or 0 for _, row in rows),
        "spread": max(row.get("machine_spread") or 0.0 for _, row in rows),
        "thread_rows": sum(len(variants) for variants in threads.values()),
        "threads": [(words, list(dict.fromkeys(names))) for words, names in threads.items()],
    }

"""What a variant costs: seconds of its preparation, and price per inference.

An inference is one input of a batch. Times are those by which variants are compared, `paired_s`:
minutes in which the machine was slower would make a variant look dear.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tightrope.artifacts.files import read_bytes
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.errors import ArtifactError, in_one_line
from tightrope.summary.decision_types import Cost
from tightrope.summary.result_types import LatencyRow, Result, interval_of
from tightrope.summary.results import shape_of

# positions in the list of files, by model and variant
Prepared = Mapping[str, Mapping[str, Sequence[int]]]
# by model and variant; None where one of the jobs left none
PrepareSeconds = Mapping[tuple[str, str], float | None]
MILLION = 1e6
SECONDS_PER_HOUR = 3600.0
# key of `prices` for every host without a price of its own
ANY_HOST = "*"
# prices per hour by fingerprint of the host, in any currency
Prices = Mapping[str, float]


def prepare_seconds(
    prepared: Prepared, files: Sequence[str]
) -> dict[tuple[str, str], float | None]:
    """Return the seconds of the jobs before the build of each variant, see `PrepareSeconds`.

    `files` hold them. Jobs that several variants share count for each of them.
    """
    seconds = [job_seconds(path) for path in files]
    return {
        (model, variant): total([seconds[place] for place in places])
        for model, variants in prepared.items()
        for variant, places in variants.items()
    }


def total(seconds: Sequence[float | None]) -> float | None:
    """Return the sum, None where one is not known."""
    known = [one for one in seconds if one is not None]
    return math.fsum(known) if len(known) == len(seconds) else None


def job_seconds(path: str) -> float | None:
    """Return the seconds in the manifest of an engine or in a benchmark of Snakemake.

    None where Snakemake measured none, as of a job of an instant.
    """
    if Path(path).name == "engine.json":
        return open_manifest(path, EngineManifest)["build_s"]
    try:
        rows = csv.DictReader(read_bytes(path).decode().splitlines(), delimiter="\t")
        seconds = float(next(rows)["s"])
    except (KeyError, StopIteration, TypeError, ValueError, csv.Error) as error:
        raise ArtifactError(
            f"{path}: no benchmark of Snakemake ({in_one_line(error)}); delete it and run again"
        ) from error
    return seconds if math.isfinite(seconds) else None


def price_of(host: str | None, prices: Prices) -> float | None:
    """Return the price of an hour of a host, None where none is configured."""
    return None if host is None else prices.get(host, prices.get(ANY_HOST))


def hours_per_million(inferences_per_s: float) -> float:
    """Return the hours of a machine that a million inferences take."""
    return MILLION / inferences_per_s / SECONDS_PER_HOUR


def inferences_per_s(row: LatencyRow) -> float | None:
    """Return the inputs per second of one call after another, None if the time is not known."""
    return row["batch"] / row["paired_s"] if row["paired_s"] else None


def costs(results: Iterable[Result], prices: Prices, prepare_seconds: PrepareSeconds) -> list[Cost]:
    """Return an entry per measured result and shape; without a price it has no cost."""
    return [
        cost_entry(
            result,
            row,
            result["host"],
            price=price_of(result["host"], prices),
            prepare_s=prepare_seconds.get((result["model"], result["variant"])),
        )
        for result in results
        if result["host"] is not None
        for row in result["latency"]
    ]


def cost_entry(
    result: Result, row: LatencyRow, host: str, *, price: float | None, prepare_s: float | None
) -> Cost:
    """Return costs and break-even of a result at the shape of a row."""
    rate = inferences_per_s(row)
    saved, surely_saved = saved_per_inference(row)
    spent = seconds_spent(result, prepare_s)
    return {
        "model": result["model"],
        "variant": result["variant"],
        "host": host,
        "shape": shape_of(row),
        "inferences_per_s": rate,
        "price_per_hour": price,
        "cost_per_million": hours_per_million(rate) * price if rate and price else None,
        "prepare_s": prepare_s,
        "build_s": result["build_s"],
        "search_s": search_seconds(result),
        "spent_s": spent,
        "saved_s": saved,
        "break_even_inferences": break_even(spent, saved),
        "break_even_at_most": break_even(spent, surely_saved),
    }


def search_seconds(result: Result) -> float | None:
    """Return the seconds in which int8-auto was searched for a variant, None without a search."""
    return result["search"]["seconds"] if result["search"] else None


def seconds_spent(result: Result, prepare_s: float | None) -> float | None:
    """Return the seconds of preparing, searching and building, None if one is not known."""
    built = result["build_s"]
    if built is None or prepare_s is None:
        return None
    return prepare_s + (search_seconds(result) or 0.0) + built


def saved_per_inference(row: LatencyRow) -> tuple[float | None, float | None]:
    """Return the seconds saved per inference over the baseline, and those at the low end.

    The baseline took `paired_s` times the speed-up. Both are None without a speed-up.
    """
    speedup, own = interval_of(row["speedup"]), row["paired_s"]
    if speedup is None or own is None:
        return None, None
    seconds = own / row["batch"]
    # the baseline's time is known better than this variant's: vary the latter
    theirs = seconds * speedup.value
    return theirs - seconds, theirs - theirs / speedup.low


def break_even(spent_s: float | None, saved_s: float | None) -> float | None:
    """Return after how many inferences the time spent is saved, None where nothing is saved.

    A price per second of the machine is a factor of both times, so it cancels out.
    """
    if spent_s is None or saved_s is None or saved_s <= 0:
        return None
    return spent_s / saved_s

"""What each variant costs: its price per inference, and after how many its preparation has paid."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tightrope.artifacts.files import read_bytes
from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.decide.bounds import Prices, cost_of_million, price_of
from tightrope.decide.result import Entry, LatencyRow, Result, Shape, interval_of, same
from tightrope.errors import ArtifactError, in_one_line

# positions in the list of files, by model and variant
Prepared = Mapping[str, Mapping[str, Sequence[int]]]
# by model and variant; None where one of the jobs left none
PrepareSeconds = Mapping[tuple[str, str], float | None]


class Cost(Entry):
    """What a result costs at a shape; an inference is one input of a batch."""

    model: str
    variant: str
    host: str
    shape: Shape
    """Of which row."""
    inferences_per_s: float | None
    """Batch / `paired_s`."""
    price_per_hour: float | None
    """Of the host, in the currency of `prices`."""
    cost_per_million: float | None
    """Of inferences; None without a price."""
    prepare_s: float | None
    """Of calibrating, quantizing and measuring operators; 0 in float, None if a job was not
    timed."""
    build_s: float | None
    search_s: float | None
    """Of the result."""
    spent_s: float | None
    """Their sum."""
    saved_s: float | None
    """Per inference, over the baseline; negative if it is slower."""
    break_even_inferences: float | None
    """After so many it has saved `spent_s`; None if nothing is saved or `spent_s` is not known."""
    break_even_at_most: float | None
    """The same at the low end of the speed-up."""


def prepare_seconds(prepared: Prepared, files: Sequence[str]) -> PrepareSeconds:
    """Return the seconds of the jobs before the build of each variant, see `PrepareSeconds`.

    `files` hold them. Jobs that several variants share count for each of them.
    """
    seconds = [job_seconds(path) for path in files]
    found: dict[tuple[str, str], float | None] = {}
    for model, variants in prepared.items():
        for variant, places in variants.items():
            known = [one for place in places if (one := seconds[place]) is not None]
            found[model, variant] = math.fsum(known) if len(known) == len(places) else None
    return found


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


def costs(results: Iterable[Result], prices: Prices, prepare_seconds: PrepareSeconds) -> list[Cost]:
    """Return an entry per measured result and shape; without a price it has no cost."""
    found: list[Cost] = []
    for result in (one for one in results if one.host is not None):
        price, build_s, spent = price_of(result.host, prices), result.build_s, None
        prepare_s = prepare_seconds.get((result.model, result.variant))
        search_s = result.search.seconds if result.search else None
        if build_s is not None and prepare_s is not None:
            spent = prepare_s + (search_s or 0.0) + build_s
        for row in result.latency:
            rate, (saved, surely_saved) = row.throughput_per_s, saved_per_inference(row)
            cost = Cost(
                **same(result, "model", "variant", "host", "build_s"),
                shape=row.shape,
                inferences_per_s=rate,
                price_per_hour=price,
                cost_per_million=cost_of_million(rate, price) if price else None,
                prepare_s=prepare_s,
                search_s=search_s,
                spent_s=spent,
                saved_s=saved,
                break_even_inferences=break_even(spent, saved),
                break_even_at_most=break_even(spent, surely_saved),
            )
            found.append(cost)
    return found


def saved_per_inference(row: LatencyRow) -> tuple[float | None, float | None]:
    """Return the seconds saved per inference over the baseline, and those at the low end.

    The baseline took `paired_s` times the speed-up. Both are None without a speed-up.
    """
    speedup, own = interval_of(row.speedup), row.paired_s
    if speedup is None or own is None:
        return None, None
    seconds = own / row.shape.batch
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

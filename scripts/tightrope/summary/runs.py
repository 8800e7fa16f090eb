"""The results of all variants, from their records; models are read in several processes."""

from pathlib import Path
from typing import NamedTuple

from tightrope.jobs.spread import spread
from tightrope.records.accuracy import AccuracyRecord
from tightrope.summary.hosts import add_hosts
from tightrope.summary.inputs import Inputs, Settings
from tightrope.summary.model_runs import ModelFiles, Name, RunFiles, read_model
from tightrope.summary.model_types import Host
from tightrope.summary.result_types import Result
from tightrope.summary.splits import SplitsByModel


class Runs(NamedTuple):
    """What the records of all variants say, in their order.

    `judged` are the accuracy records without what `kept` leaves out, `engines` the digests of the
    engines in use.
    """

    results: list[Result]
    judged: dict[Name, AccuracyRecord]
    hosts: dict[str, Host]
    engines: dict[Name, str]


def read_runs(
    inputs: Inputs, splits: SplitsByModel, settings: Settings, *, processes: int = 1
) -> Runs:
    """Return the results of all variants, the same from any number of processes.

    Each has the records of one model at a time in memory.
    """
    paths = zip(inputs.engines, inputs.latencies, inputs.accuracies, strict=True)
    files = [RunFiles(*map(Path, run)) for run in paths]
    models: dict[str, list[int]] = {}
    for place, run in enumerate(files):
        models.setdefault(run.latency.parent.name, []).append(place)
    audits: dict[str, list[Path]] = {}
    for path in map(Path, inputs.audits):
        audits.setdefault(path.parents[1].name, []).append(path)
    predictions, logits = bool([*inputs.families, *inputs.activations]), bool([*inputs.families])
    tasks = [
        ModelFiles(
            [files[place] for place in places],
            audits.get(model, []),
            {model: splits[model]},
            settings.of_model(model),
            predictions,
            logits,
        )
        for model, places in models.items()
    ]
    results: dict[int, Result] = {}
    runs = Runs([], {}, {}, {})
    read = spread(read_model, tasks, processes=processes)
    for places, own in zip(models.values(), read, strict=True):
        results |= zip(places, own.results, strict=True)
        runs.judged.update(own.judged)
        runs.engines.update(own.engines)
        add_hosts(runs.hosts, own.machines)
    return runs._replace(results=[results[place] for place in range(len(files))])

"""Bundles of engines of the tiny models, with records and a summary made as the rules make them."""

import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from latency_records import PLAN
from short_timing import timing_settings
from tightrope.bundle.subject import Paths
from tightrope.bundle.write import write_bundle
from tightrope.jobs.child import supervised
from tightrope.measure.accuracy import measure_accuracy
from tightrope.measure.latency import measure_latency
from tightrope.plan.job_inputs import FOLDER
from tightrope.summary.runs import Inputs, Settings
from tightrope.summary.summarize import summarize
from tightrope.variants import Variant
from tiny_model import EXECUTION, LIMITS, LONGEST, TinyModel, artifacts_of

MODEL, THREADS = "tiny", 2
SCRIPTS = Path(__file__).parents[2] / "scripts"
TEMPLATE = SCRIPTS / "tightrope/bundle/template/card.md.j2"


def measured(
    model: TinyModel, engine: Path, folder: Path, variant: Variant, shapes: list[dict[str, int]]
) -> Paths:
    """Measure and report the variant alone; return what its bundle is written from."""
    checkpoint = model.checkpoint
    made, reports = folder / "artifacts" / MODEL, folder / "reports" / MODEL
    reports.mkdir(parents=True)
    # the summary takes the names of model and variant from the folders
    links = {made / "engines" / str(variant): engine.parent, made / "checkpoint": checkpoint.parent}
    links |= {made / path.name: path for path in model.data.parent.iterdir()}
    for path, target in links.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
    engine = made / "engines" / str(variant) / engine.name
    checkpoint, split = made / "checkpoint/checkpoint.json", made / "splits/evaluation.json"
    execution = replace(EXECUTION, threads=THREADS)
    artifacts = artifacts_of(model, engine, name=MODEL)
    latency, accuracy = (reports / f"{variant}.{kind}.json" for kind in ("latency", "accuracy"))
    paths = Paths(artifacts, latency, accuracy, folder / "summary.json")
    facts = {"max_sequence": LONGEST, "max_seconds": 60.0, "execution": execution}
    measure_accuracy(artifacts, paths.accuracy, **facts)
    settings = replace(timing_settings(**PLAN), shapes=shapes, execution=execution)
    timed = artifacts_of(model, engine, "timing", name=MODEL)
    measure_latency(timed, engine, paths.latency, settings)
    inputs = Inputs(
        engines=[engine],
        latencies=[paths.latency],
        accuracies=[paths.accuracy],
        checkpoints=[checkpoint],
        splits=[split],
    )
    plan = Settings(
        unavailable=[],
        baselines={MODEL: {"cpu": str(variant)}},
        budget_points=1.0,
        accept_disturbed=True,
    )
    summarize(inputs, plan, json_target=paths.summary, csv_target=folder / "summary.csv")
    return paths


def bundled(paths: Paths, target: Path, engine: str, request: str = "texts") -> Path:
    """Write the bundle with the programs that the rule gives to the job; return it."""
    names = ("predict", "verify", "machine", "buckets", request, f"engines/{engine}")
    programs = [SCRIPTS / FOLDER / f"{name}.py" for name in names]
    write_bundle(target, paths, programs=programs, template=TEMPLATE, longest=LONGEST)
    return target


def make_bundle(
    model: TinyModel,
    engine: Path,
    folder: Path,
    variant: Variant,
    *,
    shapes: list[dict[str, int]],
    request: str = "texts",
) -> None:
    """Measure the variant and unpack its bundle below `folder`."""
    paths = supervised(measured, model, engine, folder, variant, shapes, limits=LIMITS)
    archive = folder / "bundle.tar.gz"
    supervised(bundled, paths, archive, variant.engine, request, limits=LIMITS)
    unpack(archive, folder)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a bundle below `folder`; return the folder that it holds."""
    with tarfile.open(archive) as files:
        files.extractall(folder)
        return folder / files.getnames()[0].partition("/")[0]


def folder_of(made: Path) -> Path:
    """The unpacked folder in one that `make_bundle` made."""
    return next(path.parent for path in made.glob("*/bundle.json"))


def change(folder: Path, name: str, changed: Callable[[Any], Any]) -> None:
    """Change a JSON file of a bundle, and its line in SHA256SUMS with it."""
    file, sums = folder / name, folder / "SHA256SUMS"
    before = sha256(file.read_bytes()).hexdigest()
    file.write_text(json.dumps(changed(json.loads(file.read_text()))))
    after = sha256(file.read_bytes()).hexdigest()
    sums.write_text(sums.read_text().replace(before, after))

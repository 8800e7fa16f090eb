"""Train, build and measure one smaller model of a search."""

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.artifacts.manifest import open_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.build import build_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.timing_batches import timing_batches
from tightrope.int8.calibrate import calibrate
from tightrope.int8.quantize import quantize_onnx
from tightrope.jobs.child import Child, supervised
from tightrope.machine.quiet import QuietMachine
from tightrope.measure.accuracy import measure_accuracy
from tightrope.measure.engine_worker import engine_worker
from tightrope.measure.rounds import measure_rounds, start, warm_up
from tightrope.measure.settings import TimingSettings
from tightrope.records.accuracy import AccuracyRecord

Rounds = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Files:
    """Manifests that a search reads.

    `source` is the parent as the smaller models start from it, `teacher` the outputs that they
    learn from, if any, `train`, `calibration` and `timing` are splits, `parent` is the parent's
    checkpoint and `baseline` the engine of its baseline.
    """

    source: Path
    train: Path
    calibration: Path
    timing: Path
    parent: Path
    baseline: Path
    teacher: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a smaller model is trained and built.

    `training` are the fields of TrainingSettings besides `changes` and `state`, `variant` is what
    is built with `options`, from ONNX that is quantized by `scheme` with the statistics `method` of
    so many `samples`, or from ONNX in float where `scheme` is None.
    """

    training: Mapping[str, Any]
    variant: str
    options: Mapping[str, Any]
    scheme: str | None
    method: str
    samples: int


@dataclass(frozen=True)
class Workshop:
    """Makes and measures models in `folder`, which are deleted when they are measured."""

    files: Files
    recipe: Recipe
    settings: TimingSettings
    machine: QuietMachine
    folder: Path

    def train(self, prune: Mapping[str, Any]) -> Path:
        """Return the manifest of the trained smaller model; raise WorkFailed where it fails.

        A training that was killed goes on where it was.
        """
        # imports PyTorch
        from tightrope.model.changes import Changes
        from tightrope.training.micro_batches import run_training
        from tightrope.training.train import TrainingSettings, train_model

        settings = TrainingSettings(
            **self.recipe.training,
            changes=Changes(prune=prune),
            state=self.folder / "training",
        )
        manifest = self.folder / "checkpoint" / "checkpoint.json"
        train = partial(
            train_model,
            manifest,
            settings,
            source=self.files.source,
            data=self.files.train,
            teacher=self.files.teacher,
            terminal=self.settings.terminal,
        )
        run_training(train, settings.recipe, limits=self.settings.execution.limits)
        return manifest

    def build(self, checkpoint: Path) -> Path:
        """Return the manifest of the engine of a checkpoint; raise WorkFailed where it fails."""
        execution, recipe = self.settings.execution, self.recipe
        onnx = self.folder / "model.simplified.onnx"
        work = partial(write_onnx, checkpoint, self.files.timing, onnx, threads=execution.threads)
        supervised(work, limits=execution.limits)
        source = onnx
        if recipe.scheme is not None:
            source = self.folder / "model.quantized.onnx"
            supervised(partial(self.quantize, checkpoint, onnx, source), limits=execution.limits)
        target = self.folder / "engines" / recipe.variant / "engine.json"
        options = dict(recipe.options)
        build_engine(recipe.variant, source, target, execution=execution, options=options)
        manifest = open_manifest(target, EngineManifest)
        if manifest["status"] != "ok":
            raise WorkFailed(f"not built: {manifest['reason']}", transient=False)
        return target

    def quantize(self, checkpoint: Path, onnx: Path, target: Path) -> None:
        """Write the quantized ONNX file."""
        cache = self.folder / "calibration.json"
        calibrate(
            onnx,
            self.files.calibration,
            checkpoint,
            cache,
            method=self.recipe.method,
            samples=self.recipe.samples,
            max_sequence=self.settings.max_sequence,
            percentile=None,
            threads=self.settings.execution.threads,
            libraries={},
        )
        assert self.recipe.scheme is not None  # only then it is called
        quantize_onnx(onnx, cache, target, scheme=self.recipe.scheme, repair={})

    def answers(self, engine: Path, checkpoint: Path, model: str) -> AccuracyRecord:
        """Return the predictions of an engine on the calibration split; raise WorkFailed."""
        target = self.folder / "accuracy.json"
        variant = open_manifest(engine, EngineManifest)["variant"]
        measure_accuracy(
            Artifacts(engine, checkpoint, self.files.calibration),
            target,
            # the baseline's is the parent's
            model=open_manifest(checkpoint, CheckpointManifest).get("model", model),
            variant=variant,
            max_sequence=self.settings.max_sequence,
            max_seconds=self.settings.execution.limits.seconds,
            execution=self.settings.execution,
        )
        record = AccuracyRecord.read(target)
        if record.status != "ok":
            raise WorkFailed(f"{model}: {record.reason}", transient=False)
        return record

    def rounds(self, engine: Path, checkpoint: Path) -> Rounds:
        """Return rounds of the parent's baseline and the engine, see `tightrope.records.rounds`."""
        pairs = [(self.files.baseline, self.files.parent), (engine, checkpoint)]
        with ExitStack() as stack:
            workers = [stack.enter_context(self.worker(*pair)) for pair in pairs]
            start(workers, self.machine)
            warm_up(workers)
            return measure_rounds(workers, self.machine, "smaller model")

    def worker(self, engine: Path, checkpoint: Path) -> Child:
        """Return the child that times an engine; two share the memory limit of the job."""
        threads, limits = self.settings.execution.threads, self.settings.execution.limits
        batches = timing_batches(
            checkpoint,
            self.files.timing,
            self.settings.shapes,
            max_sequence=self.settings.max_sequence,
        )
        return engine_worker(engine, checkpoint, batches, limits, threads=threads, share=2)

    def clear(self) -> None:
        """Delete what was made."""
        shutil.rmtree(self.folder, ignore_errors=True)


def write_onnx(checkpoint: Path, data: Path, target: Path, *, threads: int) -> None:
    """Export and simplify a checkpoint."""
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx

    exported = target.with_name("model.onnx")
    export_onnx(checkpoint, exported, threads=threads)
    simplify_onnx(exported, checkpoint, data, target, threads=threads)
    exported.unlink()


def parameters_of(checkpoint: Path) -> int:
    """Return the number of weights of a checkpoint."""
    return open_manifest(checkpoint, CheckpointManifest)["parameters"]

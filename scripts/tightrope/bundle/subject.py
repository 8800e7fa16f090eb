"""What a bundle is made of, read and checked: an engine, its records and decision, its needs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from packaging.requirements import Requirement

from tightrope.artifacts.files import read_json, sha256
from tightrope.artifacts.manifest import Artifacts, read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest, SplitManifest
from tightrope.decide.result import Result
from tightrope.engine_table import ENGINES
from tightrope.errors import TightropeError
from tightrope.machine.distributions import closure
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.latency import LatencyRecord
from tightrope.records.record import BUSIEST, require_engine
from tightrope.signature import IMAGE
from tightrope.summary.document import Summary, read_summary
from tightrope.variants import Variant, parse

# fields of config.json that transformers does not know
OWN = "tightrope_"
PROGRAMS = re.compile(BUSIEST + r'(?:[^"\\]|\\.)*')


@dataclass(frozen=True)
class Paths:
    """The inputs of a bundle; `latency`, `accuracy` and `summary` are records and summary.json."""

    artifacts: Artifacts
    latency: Path
    accuracy: Path
    summary: Path


@dataclass(frozen=True)
class Subject:
    """A variant of a model that was built, measured and reported; its files are verified."""

    paths: Paths
    variant: Variant
    engine: EngineManifest
    checkpoint: CheckpointManifest
    data: SplitManifest
    latency: LatencyRecord
    accuracy: AccuracyRecord
    summary: Summary
    result: Result

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.latency.model


def read_subject(paths: Paths) -> Subject:
    """Read and check all that a bundle is made of, without names of other programs of the host.

    Raises TightropeError where the engine was not built or not measured, or where no program
    without Tightrope can load it.
    """
    facts = read_manifest(paths.artifacts.engine, EngineManifest)
    require_built(facts)
    variant = parse(facts["variant"])
    require_own_program(variant, paths.artifacts.engine.parent)
    latency, accuracy = LatencyRecord.read(paths.latency), AccuracyRecord.read(paths.accuracy)
    for path, record in ((paths.latency, latency), (paths.accuracy, accuracy)):
        require_engine(path, record.engine_sha256, sha256(paths.artifacts.engine))
        if record.status != "ok":
            raise TightropeError(f"{variant} was not measured: {record.reason}")
    # no reason names other programs of the host
    text = PROGRAMS.sub("", msgspec.json.encode(read_summary(paths.summary)).decode())
    summary = msgspec.json.decode(text, type=Summary)
    return Subject(
        paths=paths,
        variant=variant,
        engine=facts,
        checkpoint=read_manifest(paths.artifacts.checkpoint, CheckpointManifest),
        data=read_manifest(paths.artifacts.data, SplitManifest),
        latency=replace(latency, busiest={}),
        accuracy=accuracy,
        summary=summary,
        result=result_of(summary, latency.model, latency.variant),
    )


def require_built(engine: EngineManifest) -> None:
    """Raise TightropeError with the reason where an engine was not built."""
    if engine["status"] != "ok":
        raise TightropeError(f"{engine['variant']} was not built: {engine['reason']}")


def require_own_program(variant: Variant, folder: Path) -> None:
    """Raise TightropeError unless a program without Tightrope loads the engine in `folder`."""
    place, others = f"{variant}: ", "bundle another engine, such as onnxruntime or openvino"
    if variant.device != "cpu":
        raise TightropeError(f"{place}an engine for a GPU has no bundle yet; {others}")
    if ENGINES[variant.engine].bundled is None:
        raise TightropeError(
            f"{place}torch.compile compiles at each start; bundle inductor instead"
        )
    config = folder / "config.json"
    own = read_json(config, dict[str, Any]) if config.is_file() else {}
    if fields := [name for name in own if name.startswith(OWN)]:
        raise TightropeError(
            f"{place}its PyTorch module needs code of Tightrope ({', '.join(fields)} in "
            f"config.json); {others}"
        )


def result_of(summary: Summary, model: str, variant: str) -> Result:
    """Return the result of a variant; raise TightropeError where the summary has none."""
    for one in summary.results:
        if (one.model, one.variant) == (model, variant):
            return one
    raise TightropeError(f"reports/summary.json has no {model}/{variant}; run snakemake first")


def imported(engine: str, task: str) -> tuple[str, ...]:
    """Return the distributions that the programs of a bundle import."""
    return (*(ENGINES[engine].bundled or ()), "numpy", "pillow" if task == IMAGE else "tokenizers")


def pinned(engine: str, task: str, built_with: Mapping[str, str | None]) -> dict[str, str]:
    """Return the version of each distribution that a bundle needs, as installed here.

    Raises TightropeError where the engine was built with another version.
    """
    packages = closure(map(Requirement, imported(engine, task)))
    for name, version in built_with.items():
        here = packages.get(name)
        if here is not None and version is not None and version.partition("+")[0] != here:
            raise TightropeError(
                f"the engine was built with {name} {version}, {here} is installed; run again"
            )
    return packages

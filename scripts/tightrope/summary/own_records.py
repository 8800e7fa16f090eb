"""Reading records: whether they are of that model and variant, on the engine in use."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from tightrope.artifacts.files import sha256
from tightrope.errors import ArtifactError
from tightrope.records.accuracy import AccuracyRecord
from tightrope.records.family import model_and_variant
from tightrope.records.race import RaceRecord
from tightrope.records.record import TRAINING, Record, require_engine

Kind = TypeVar("Kind", bound=Record)
Raced = TypeVar("Raced", bound=RaceRecord)
# SHA-256 of each engine.json in use, by model and variant
Engines = Mapping[tuple[str, str], str]


def engines_in_use(paths: Iterable[Path | str]) -> Engines:
    """Return the digests of `artifacts/{model}/engines/{variant}/engine.json`."""
    return {(Path(one).parents[2].name, Path(one).parent.name): sha256(one) for one in paths}


def read_own(path: Path | str, kind: type[Kind], engines: Engines) -> Kind:
    """Return the record `reports/{model}/{variant}.{kind}.json` of an engine in use.

    Raises ArtifactError for a record of another model, variant or engine, and as `Record.read`.
    """
    record = kind.read(path)
    require_own(path, record, engines)
    return record


def require_own(path: Path | str, record: Record, engines: Engines) -> None:
    """Raise ArtifactError for a record of another model, variant or engine than its path says."""
    model = Path(path).parent.name
    variant = Path(path).name.rsplit(".", 2)[0]
    if record.variant == TRAINING:
        variant = TRAINING
    if (record.model, record.variant) != (model, variant):
        raise ArtifactError(
            f"{path}: the record of {record.variant} of model {record.model}, not of {variant} of "
            f"{model}; delete it and run again"
        )
    require_engine(path, record.engine_sha256, engines.get((model, variant)))


def require_data(path: Path | str, record: AccuracyRecord, split: Path | str, digest: str) -> None:
    """Raise ArtifactError where predictions were recorded on other data than this split.

    `digest` is the SHA-256 of its file.
    """
    if record.data_sha256 != digest:
        raise ArtifactError(
            f"{path}: predictions on other data than {split}; delete it and run again"
        )


def read_own_race(path: Path | str, kind: type[Raced], engines: Engines) -> Raced:
    """Return a record of engines in use that ran in the same rounds; raises as `read_own`.

    Those of a family are named by model and variant, those of a race by variant.
    """
    record = kind.read(path)
    if record.model != Path(path).parent.name:
        raise ArtifactError(
            f"{path}: the record of model {record.model}, not of {Path(path).parent.name}; delete "
            "it and run again"
        )
    for name, digest in record.engines_sha256.items():
        known = model_and_variant(name) if "/" in name else (record.model, name)
        if known not in engines:
            raise ArtifactError(
                f"{path}: raced {name}, which is configured no more; delete it and run again"
            )
        require_engine(path, digest, engines[known])
    return record

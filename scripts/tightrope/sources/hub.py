"""Models and data sets of the Hugging Face hub; without a network an error at once."""

import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from tightrope.errors import ConfigError, TightropeError
from tightrope.sources.material import Material, Row

SECONDS_TO_ANSWER = 5
ROLES = {"evaluation": ("validation", "dev", "valid", "test"), "train": ("train",)}


class Place(NamedTuple):
    """A repository of the hub, the configuration in it, and the revision asked for."""

    name: str
    configuration: str | None
    revision: str | None


def parse_place(source: str, place: str) -> Place:
    """Read `owner/name[/configuration][@revision]`; raises ConfigError naming `source`."""
    path, _, revision = place.partition("@")
    parts = path.split("/")
    if len(parts) > 3 or not all(parts):
        raise ConfigError(f"{source}: a hub source is hub:owner/name@revision")
    configuration = parts[2] if len(parts) == 3 else None
    return Place("/".join(parts[:2]), configuration, revision or None)


def check_reachable(source: str, remedy: str) -> None:
    """Raise TightropeError with `remedy` where the hub gives no answer within seconds."""
    from huggingface_hub.constants import ENDPOINT

    reason = [f"no answer within {SECONDS_TO_ANSWER} s"]

    def knock() -> None:
        try:
            urllib.request.urlopen(ENDPOINT, timeout=SECONDS_TO_ANSWER).close()
            reason.clear()
        except urllib.error.HTTPError:
            reason.clear()
        except OSError as error:
            reason[:] = [str(getattr(error, "reason", error))]

    # A name server that does not answer holds the call longer than its timeout says.
    thread = threading.Thread(target=knock, daemon=True)
    thread.start()
    thread.join(2 * SECONDS_TO_ANSWER)
    if reason:
        raise TightropeError(f"{source}: {ENDPOINT} could not be reached ({reason[0]}); {remedy}")


def fetch_model(source: str, place: str, folder: Path, *, files: list[str], remedy: str) -> str:
    """Put the wanted files of a model into `folder`; returns the commit that was fetched."""
    from huggingface_hub import HfApi, snapshot_download

    wanted = parse_place(source, place)
    check_reachable(source, remedy)
    try:
        commit = HfApi().model_info(wanted.name, revision=wanted.revision, timeout=30).sha
        snapshot = snapshot_download(wanted.name, revision=commit, allow_patterns=files)
    except Exception as error:
        raise failed(source, error, remedy) from error
    for file in sorted(Path(snapshot).iterdir()):
        if file.name in files:
            (folder / file.name).write_bytes(file.read_bytes())
    return str(commit)


def read_hub(source: str, place: str, *, columns: dict[str, str], remedy: str) -> Material:
    """Texts and labels of a data set of the hub, without running any code of it."""
    from datasets import load_dataset
    from huggingface_hub import HfApi

    wanted = parse_place(source, place)
    check_reachable(source, remedy)
    try:
        commit = HfApi().dataset_info(wanted.name, revision=wanted.revision, timeout=30).sha
        tables = load_dataset(wanted.name, wanted.configuration, revision=commit)
    except Exception as error:
        raise failed(source, error, remedy) from error
    return material_of(source, tables, columns)._replace(revision=str(commit))


def failed(source: str, error: Exception, remedy: str) -> TightropeError:
    """One line for whatever the hub's libraries raise."""
    reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return TightropeError(f"{source}: could not be fetched ({reason}); {remedy}")


def material_of(source: str, tables: Any, columns: dict[str, str]) -> Material:
    """Material of a `datasets.DatasetDict`.

    Rows without a text or a label (-1 or None) are left out and counted: what is on the hub
    cannot be mended here. Raises TightropeError for a column that is missing or holds no texts.
    """
    present = {
        role: next((name for name in names if name in tables), None)
        for role, names in ROLES.items()
    }
    if not any(present.values()):
        raise TightropeError(f"{source}: no train or validation split, only {', '.join(tables)}")
    labels = label_names(source, tables, [name for name in present.values() if name], columns)
    parts = {role: rows_of(tables[name], labels, columns) for role, name in present.items() if name}
    read = sum(len(tables[name]) for name in present.values() if name)
    left_out = read - sum(map(len, parts.values()))
    if len(parts) == 2:
        return Material(labels, parts["train"], parts["evaluation"], left_out=left_out)
    return Material(labels, next(iter(parts.values())), left_out=left_out)


def label_names(source: str, tables: Any, splits: list[str], columns: dict[str, str]) -> list[str]:
    """Names of the labels: the data set's own, else the sorted values of the column."""
    features = tables[splits[0]].features
    for column in columns.values():
        if column not in features:
            raise TightropeError(
                f"{source}: has no column {column!r}, only {', '.join(features)}; "
                "set columns.text and columns.label of the model"
            )
    kind = getattr(features[columns["text"]], "dtype", "lists")
    if kind not in ("string", "large_string"):
        raise TightropeError(
            f"{source}: column {columns['text']!r} holds {kind}, no texts; set columns.text of the "
            "model to the column that holds texts"
        )
    names = getattr(features[columns["label"]], "names", None)
    if names:
        return list(names)
    values = {value for split in splits for value in tables[split].unique(columns["label"])}
    ordered = sorted(value for value in values if value not in (None, -1))
    return [str(value) for value in ordered]


def rows_of(table: Any, labels: list[str], columns: dict[str, str]) -> list[Row]:
    """Stripped texts with label indices, without the rows that lack one of the two."""
    named = getattr(table.features[columns["label"]], "names", None)
    index = {(i if named else name): i for i, name in enumerate(labels)}
    pairs = zip(table[columns["text"]], table[columns["label"]], strict=True)
    found = (((text or "").strip(), label if named else str(label)) for text, label in pairs)
    return [(text, index[label]) for text, label in found if text and label in index]

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
    """Texts and labels of a data set of the hub."""
    tables, commit = fetch_tables(source, place, remedy=remedy)
    return material_of(source, tables, columns)._replace(revision=commit)


def fetch_tables(source: str, place: str, *, remedy: str) -> tuple[Any, str]:
    """The `datasets.DatasetDict` and the commit that was fetched, without running code of it."""
    from datasets import load_dataset
    from huggingface_hub import HfApi

    wanted = parse_place(source, place)
    check_reachable(source, remedy)
    try:
        commit = HfApi().dataset_info(wanted.name, revision=wanted.revision, timeout=30).sha
        tables = load_dataset(wanted.name, wanted.configuration, revision=commit)
    except Exception as error:
        raise failed(source, error, remedy) from error
    return tables, str(commit)


def failed(source: str, error: Exception, remedy: str) -> TightropeError:
    """One line for whatever the hub's libraries raise."""
    reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return TightropeError(f"{source}: could not be fetched ({reason}); {remedy}")


def material_of(source: str, tables: Any, columns: dict[str, str]) -> Material:
    """Material of a `datasets.DatasetDict` with a column of texts.

    Rows without a text or a label (-1 or None) are left out and counted: what is on the hub
    cannot be mended here. Raises TightropeError for a column that is missing or holds no texts.
    """
    roles = roles_of(source, tables, columns)
    for table in roles.values():
        kind = getattr(table.features[columns["text"]], "dtype", "lists")
        if kind not in ("string", "large_string"):
            raise TightropeError(
                f"{source}: column {columns['text']!r} holds {kind}, no texts; set columns.text of "
                "the model to the column that holds texts"
            )
    labels, index = label_index(roles, columns["label"])
    parts = {role: rows_of(table, index, columns) for role, table in roles.items()}
    return material_of_parts(labels, roles, parts)


def roles_of(source: str, tables: Any, columns: dict[str, str]) -> dict[str, Any]:
    """The tables for train and evaluation, or one of the two; each has all of `columns`."""
    named = {
        role: next((name for name in names if name in tables), None)
        for role, names in ROLES.items()
    }
    roles = {role: tables[name] for role, name in named.items() if name}
    if not roles:
        raise TightropeError(f"{source}: no train or validation split, only {', '.join(tables)}")
    for table in roles.values():
        for column in columns.values():
            if column not in table.features:
                keys = " and ".join(f"columns.{name}" for name in columns)
                raise TightropeError(
                    f"{source}: has no column {column!r}, only {', '.join(table.features)}; "
                    f"set {keys} of the model"
                )
    return roles


def label_index(roles: dict[str, Any], column: str) -> tuple[list[str], dict[Any, int]]:
    """Names of the labels, the data set's own or the sorted values; the index of each value."""
    names = getattr(next(iter(roles.values())).features[column], "names", None)
    if names:
        return list(names), {number: number for number in range(len(names))}
    values = {value for table in roles.values() for value in table.unique(column)}
    ordered = sorted(value for value in values if value not in (None, -1))
    return [str(value) for value in ordered], {value: i for i, value in enumerate(ordered)}


def rows_of(table: Any, index: dict[Any, int], columns: dict[str, str]) -> list[Row]:
    """Stripped texts with label indices, without the rows that lack one of the two."""
    pairs = zip(table[columns["text"]], table[columns["label"]], strict=True)
    found = (((text or "").strip(), label) for text, label in pairs)
    return [(text, index[label]) for text, label in found if text and label in index]


def material_of_parts(
    labels: list[str], roles: dict[str, Any], parts: dict[str, list[Row]]
) -> Material:
    """Material of the rows that were kept of each table; one table alone is a pool."""
    left_out = sum(map(len, roles.values())) - sum(map(len, parts.values()))
    if len(parts) == 2:
        return Material(labels, parts["train"], parts["evaluation"], left_out=left_out)
    return Material(labels, next(iter(parts.values())), left_out=left_out)

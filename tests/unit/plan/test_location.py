"""Where the workflow is, on its own and as a module below a prefix."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.io import is_flagged
from tightrope.errors import ConfigError
from tightrope.plan.location import Location


def workflow(
    prefix: str, *, main: bool = False, replaces: bool = False, stored: str | None = None
) -> Any:
    """What is read of Snakemake's workflow."""
    modifier = SimpleNamespace(
        path_modifier=SimpleNamespace(
            modifies_prefixes=replaces, replace_prefix=lambda path: prefix + path
        ),
        is_main_snakefile=lambda: main,
    )
    storage = SimpleNamespace(default_storage_provider=stored)
    return SimpleNamespace(modifier=modifier, storage_settings=storage)


def test_on_its_own_all_paths_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    location = Location.of(workflow("", main=True), f"{tmp_path}/tightrope")
    assert location.scripts == "tightrope/scripts"
    assert location.made("reports/summary.json") == "reports/summary.json"
    assert location.given(lambda config, wildcards: [*config], {"a.csv": 1}, None) == ["a.csv"]


def test_below_a_prefix_only_files_of_the_user_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    location = Location.of(workflow("sub/"), "/opt/tightrope")
    assert location.module
    assert location.scripts == "/opt/tightrope/scripts"
    assert location.made("reports/summary.json") == "sub/reports/summary.json"
    made = "artifacts/other/checkpoint/checkpoint.json"
    given = {"teacher": made, "tables": ["a.csv", "/data/b.csv"]}
    assert location.given(lambda config, wildcards: given, {}, None) == {
        "teacher": made,
        "tables": [f"{tmp_path}/a.csv", "/data/b.csv"],
    }
    assert location.given(lambda config, wildcards: ["a.csv", made], {}, None) == [
        f"{tmp_path}/a.csv",
        made,
    ]


def test_files_of_the_user_are_not_in_storage() -> None:
    location = Location.of(workflow("", main=True, stored="s3"), "tightrope")
    made = "artifacts/other/checkpoint/checkpoint.json"
    given = location.given(lambda config, wildcards: {"t": made, "u": ["a.csv"]}, {}, None)
    assert given == {"t": made, "u": ["a.csv"]}
    assert is_flagged(given["u"][0], "local")
    assert not is_flagged(given["t"], "local")


def test_a_module_that_moves_some_files_and_not_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="replace_prefix is not supported; use prefix"):
        Location.of(workflow("", replaces=True), "/opt/tightrope")

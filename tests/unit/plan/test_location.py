"""Where the workflow is, on its own and as a module below a prefix, and its files in storage."""

from types import SimpleNamespace
from typing import Any

import pytest
from snakemake.io import is_flagged
from tightrope.errors import ConfigError
from tightrope.plan.location import Location, require_storable

MADE = "artifacts/other/checkpoint/checkpoint.json"


def workflow(prefix, *, main=False, replaces=False, stored=None) -> Any:
    """What is read of Snakemake's workflow."""
    paths = {"modifies_prefixes": replaces, "replace_prefix": lambda path: prefix + path}
    modifier = SimpleNamespace(
        path_modifier=SimpleNamespace(**paths), is_main_snakefile=lambda: main
    )
    storage = SimpleNamespace(default_storage_provider=stored)
    return SimpleNamespace(modifier=modifier, storage_settings=storage)


def given(location: Location, paths: Any) -> Any:
    """The inputs that a function of the configuration returns, where they are."""
    return location.given(lambda config, wildcards: paths, {}, None)


def test_paths_stay_on_their_own_and_below_a_prefix_those_of_the_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    alone = Location.of(workflow("", main=True), f"{tmp_path}/tightrope")
    assert (alone.scripts, alone.module) == ("tightrope/scripts", False)
    assert alone.made("reports/summary.json") == "reports/summary.json"
    assert given(alone, ["a.csv"]) == ["a.csv"]
    below = Location.of(workflow("sub/"), "/opt/tightrope")
    assert (below.scripts, below.module) == ("/opt/tightrope/scripts", True)
    assert below.made("reports/summary.json") == "sub/reports/summary.json"
    assert given(below, {"teacher": MADE, "tables": ["a.csv", "/data/b.csv"]}) == {
        "teacher": MADE,
        "tables": [f"{tmp_path}/a.csv", "/data/b.csv"],
    }
    assert given(below, ["a.csv", MADE]) == [f"{tmp_path}/a.csv", MADE]
    with pytest.raises(ConfigError, match="replace_prefix is not supported; use prefix"):
        Location.of(workflow("", replaces=True), "/opt/tightrope")
    # files of the user are not in storage
    location = Location.of(workflow("", main=True, stored="s3"), "tightrope")
    found = given(location, {"t": MADE, "u": ["a.csv"]})
    assert found == {"t": MADE, "u": ["a.csv"]}
    assert [is_flagged(one, "local") for one in (found["t"], *found["u"])] == [False, True]


@pytest.mark.parametrize(
    ("hosts", "unlabelled", "words", "line"),
    [
        ({"genoa": {}}, None, ["snakemake", "-n"], None),
        ({"genoa": {}, "h100": {}}, None, [], "config: hosts = genoa, h100: "),
        ({}, "files:more.csv", [], "config: models.m.distill.unlabelled: "),
        ({}, None, ["reports/summary.html"], r"^reports/summary\.html: .*; give no target$"),
    ],
)
def test_what_does_not_work_in_storage_is_one_line(hosts, unlabelled, words, line) -> None:
    config = {"hosts": hosts, "models": {"m": {"distill": {"unlabelled": unlabelled}}}}
    if line is None:
        return require_storable(config, words)
    with pytest.raises(ConfigError, match=line) as raised:
        require_storable(config, words)
    assert "--default-storage-provider" in str(raised.value)

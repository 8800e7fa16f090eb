"""What does not work where the workflow is a module, or its files are in storage."""

from types import SimpleNamespace

import pytest
from tightrope.errors import ConfigError
from tightrope.plan.location import Location, require_storable


def test_a_module_that_moves_some_files_and_not_all_is_refused() -> None:
    """Its files below a prefix and in storage: tests/workflow/test_module.py and test_stored.py."""
    paths = SimpleNamespace(modifies_prefixes=True)
    workflow = SimpleNamespace(modifier=SimpleNamespace(path_modifier=paths))
    with pytest.raises(ConfigError, match="replace_prefix is not supported; use prefix"):
        Location.of(workflow, "/opt/tightrope")


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

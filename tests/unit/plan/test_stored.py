"""What does not work yet with files in storage is refused in one line that names the key."""

from typing import Any

import pytest
from tightrope.errors import ConfigError
from tightrope.plan.location import require_storable

PLAIN: dict[str, Any] = {"hosts": {}, "models": {"m": {"distill": None}}}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"hosts": {"genoa": {}, "h100": {}}}, "config: hosts = genoa, h100: "),
        (
            {"models": {"m": {"distill": {"unlabelled": "files:more.csv"}}}},
            "config: models.m.distill.unlabelled: ",
        ),
    ],
)
def test_it_names_the_key(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigError, match=line) as raised:
        require_storable({**PLAIN, **changes}, [])
    assert "--default-storage-provider" in str(raised.value)


def test_a_host_and_a_teacher_are_fine() -> None:
    taught = {"m": {"distill": {"unlabelled": None}}}
    require_storable({**PLAIN, "hosts": {"genoa": {}}, "models": taught}, ["snakemake", "-n"])


def test_a_report_is_no_target() -> None:
    with pytest.raises(ConfigError, match=r"^reports/summary\.html: .*; give no target$"):
        require_storable(PLAIN, ["snakemake", "reports/summary.html", "--jobs", "2"])

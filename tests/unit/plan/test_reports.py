"""Reports of a run: kept under the name of their configuration, and what the page says of it."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tightrope.artifacts.files import file_state, write_bytes
from tightrope.plan.reports import REPORTS, configuration_files, keep_reports, overrides


def workflow(*configfiles: str, config: Any = None) -> SimpleNamespace:
    """The setting of Snakemake's workflow that is read."""
    settings = SimpleNamespace(configfiles=[*map(Path, configfiles)], config=config)
    return SimpleNamespace(config_settings=settings)


@pytest.fixture(autouse=True)
def _reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole report."""
    monkeypatch.chdir(tmp_path)
    Path("reports").mkdir()
    for report in REPORTS:
        report.write_text(report.name)


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (["config/config.yaml"], "config"),
        (["a.yaml", "studies/traffic.yaml"], "traffic"),
        ([], "config"),
    ],
)
def test_reports_are_kept_under_the_name_of_the_configuration(files: list[str], name: str) -> None:
    folder = keep_reports(workflow(*files), before=None)
    assert folder == Path("reports/configurations") / name
    assert [(folder / one.name).read_text() for one in REPORTS] == [one.name for one in REPORTS]
    # files are named from the project, wherever it is
    files = (f"{Path.cwd()}/config/mine.yaml", f"{Path.cwd().parent}/other.yaml")
    assert configuration_files(workflow(*files)) == ["config/mine.yaml", "../other.yaml"]


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_report_is_that_of_this_run_whatever_clock_dates_it(hours: int) -> None:
    before = file_state(REPORTS[-1])
    assert keep_reports(workflow("a.yaml"), before=before) is None
    assert not Path("reports/configurations").exists()
    write_bytes(REPORTS[-1], b"another page")
    when = time.time() + 3600 * hours
    os.utime(REPORTS[-1], (when, when))
    assert keep_reports(workflow("a.yaml"), before=before) is not None


def test_values_of_the_command_line_are_given_as_it_takes_them() -> None:
    """Snakemake reads the numbers within a value as strings."""
    given = {"calibration": {"samples": ["256"], "methods": ["minmax"]}, "strict": True}
    given |= {"accuracy_budget_points": 2, "models": {"m": {"data": "files:a b_*.csv"}}}
    given |= {"remeasure": "disturbed"}
    assert overrides(workflow(config=given)) == [
        "calibration={samples: [256], methods: [minmax]}",
        "accuracy_budget_points=2",
        'models={m: {data: "files:a b_*.csv"}}',
    ]
    assert overrides(workflow()) == []

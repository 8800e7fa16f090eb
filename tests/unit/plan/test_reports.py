import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tightrope.artifacts.files import file_state, write_bytes
from tightrope.plan.reports import (
    REPORTS,
    configuration_files,
    keep_reports,
    overrides,
)


def workflow(*configfiles: str) -> SimpleNamespace:
    """The setting of Snakemake's workflow that is read."""
    settings = SimpleNamespace(configfiles=[Path(name) for name in configfiles])
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
    for report in REPORTS:
        assert (folder / report.name).read_bytes() == report.read_bytes()


def test_configuration_files_are_named_from_the_project_wherever_it_is(tmp_path: Path) -> None:
    files = [tmp_path / "config/mine.yaml", Path("/elsewhere/config/other.yaml")]
    assert configuration_files(workflow(*map(str, files))) == ["config/mine.yaml", "other.yaml"]
    assert configuration_files(workflow()) == []


def test_reports_of_an_earlier_run_are_not_kept_for_this_one() -> None:
    before = file_state(REPORTS[-1])
    assert keep_reports(workflow("a.yaml"), before=before) is None
    assert not Path("reports/configurations").exists()


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_report_is_that_of_this_run_whatever_clock_dates_it(hours: int) -> None:
    before = file_state(REPORTS[-1])
    write_bytes(REPORTS[-1], b"another page")
    when = time.time() + 3600 * hours
    os.utime(REPORTS[-1], (when, when))
    assert keep_reports(workflow("a.yaml"), before=before) is not None


def test_values_of_the_command_line_are_given_as_it_takes_them() -> None:
    """Snakemake reads the numbers within a value as strings."""
    given = {
        "calibration": {"samples": ["256"], "methods": ["minmax"]},
        "accuracy_budget_points": 2,
        "models": {"m": {"data": "files:a b_*.csv"}},
        "remeasure": "disturbed",
        "strict": True,
    }
    settings = SimpleNamespace(config_settings=SimpleNamespace(config=given))
    assert overrides(settings) == [
        "calibration={samples: [256], methods: [minmax]}",
        "accuracy_budget_points=2",
        'models={m: {data: "files:a b_*.csv"}}',
    ]
    assert overrides(SimpleNamespace(config_settings=SimpleNamespace(config=None))) == []

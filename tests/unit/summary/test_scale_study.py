"""The made-up records of the study of scale are valid, as those of a run are."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tightrope.summary.document import read_summary
from tightrope.summary.inputs import Settings
from tightrope.summary.summarize import summarize
from tightrope.variants import parse

RECORDS = Path(__file__).parents[3] / "benchmarks/studies/scale_records.py"
BASELINE = "cpu-pytorch-fp32"
VARIANTS = (BASELINE, "cpu-onnxruntime-fp32", "cpu-onnxruntime-int8-minmax-16")


@pytest.fixture(scope="module")
def study() -> ModuleType:
    specification = importlib.util.spec_from_file_location("scale_records", RECORDS)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["scale_records"] = module
    specification.loader.exec_module(module)
    return module


def test_made_up_records_are_summarized(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = [(model, parse(variant)) for model in ("a", "b") for variant in VARIANTS]
    baselines = {model: {"cpu": BASELINE} for model in ("a", "b")}
    settings = Settings(baselines=baselines, unavailable=[], budget_points=1.0)
    inputs = study.write_records(jobs, baselines)
    summarize(inputs, settings, json_target="summary.json", csv_target="summary.csv")
    found = read_summary("summary.json")["results"]
    assert [(one["model"], one["status"]) for one in found] == [(model, "ok") for model, _ in jobs]
    assert all(one["accuracy"] for one in found)


def test_a_summary_has_the_same_bytes_from_any_number_of_processes(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # the variants of a model do not follow each other
    jobs = [(model, parse(variant)) for variant in VARIANTS for model in ("a", "b", "c")]
    baselines = {model: {"cpu": BASELINE} for model in ("a", "b", "c")}
    settings = Settings(baselines=baselines, unavailable=[], budget_points=1.0)
    inputs, texts = study.write_records(jobs, baselines), []
    for processes in (1, 2):
        target = Path(f"{processes}.json")
        summarize(inputs, settings, json_target=target, csv_target="s.csv", processes=processes)
        lines = target.read_text().splitlines()
        texts.append(
            [one for one in lines if not one.startswith((' "created"', ' "content'))]
            + [Path("s.csv").read_text()]
        )
    assert texts[0] == texts[1]

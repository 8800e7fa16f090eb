"""How long the jobs before a build took, from what they left beside their files."""

import math
from pathlib import Path

from manifests import ENGINE
from tightrope.artifacts.manifest import clear_folder, write_manifest
from tightrope.summary.cost import prepare_seconds

# as Snakemake writes it
TIMED = "s\th:m:s\tmax_rss\n{seconds}\t0:00:12\t-\n"


def made(path: Path, seconds: float) -> str:
    """The benchmark of a job that took so long."""
    path.write_text(TIMED.format(seconds=seconds))
    return str(path)


def test_the_seconds_of_all_jobs_before_a_build_are_added(tmp_path: Path) -> None:
    engine = tmp_path / "engine/engine.json"
    clear_folder(engine)
    write_manifest(engine, **{**ENGINE, "status": "ok", "build_s": 4.0})
    files = [made(tmp_path / "minmax-64.tsv", 12.5), made(tmp_path / "u8s8.tsv", 1.5), str(engine)]
    found = prepare_seconds({"m": {"float": [], "int8": [0, 1], "mixed": [0, 1, 2]}}, files)
    assert found == {("m", "float"): 0.0, ("m", "int8"): 14.0, ("m", "mixed"): 18.0}


def test_with_a_job_whose_time_was_not_kept_the_sum_is_not_known(tmp_path: Path) -> None:
    files = [made(tmp_path / "minmax-64.tsv", 12.5), made(tmp_path / "u8s8.tsv", math.nan)]
    assert prepare_seconds({"m": {"int8": [0, 1]}}, files) == {("m", "int8"): None}

"""The command line of a run that goes on after jobs have ended."""

from tightrope.plan.continuing import command, models_of


def test_a_run_that_goes_on_drops_what_forces_jobs() -> None:
    words = ["snakemake", "reports/summary.html", "--cores", "1", "-R", "race_finalists", "train"]
    words += ["--forceall", "--executor", "slurm", "--config", "threads=2"]
    assert command(words, here=False)[3:] == [
        *("--nolock", "reports/summary.html", "--cores", "1"),
        *("--executor", "slurm", "--config", "threads=2"),
    ]
    assert command(words, here=True)[3:] == [
        *("--nolock", "--executor", "local", "--cores", "all", "reports/summary.html"),
        *("--cores", "1", "--config", "threads=2"),
    ]


def test_a_model_is_left_out_without_its_splits_or_its_checkpoint() -> None:
    outputs = [
        "artifacts/a/splits/train.json",
        ".snakemake/storage/s3/bucket/artifacts/b/checkpoint/checkpoint.json",
        "artifacts/c/model.onnx",
        "artifacts/d/engines/cpu-pytorch-fp32/engine.json",
        "reports/e/cpu-pytorch-fp32.latency.json",
    ]
    assert list(models_of(iter(outputs))) == ["a", "b"]

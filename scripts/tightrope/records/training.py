"""Record of training: raw measurements of each epoch and seed."""

from typing import Any, ClassVar, TypedDict

from tightrope.records.record import TRAINING, Record


class Epoch(TypedDict, total=False):
    """An epoch of a training."""

    seconds: float
    samples: int
    samples_per_s: float
    steps: int
    foreign_cores: float | None
    loss: float
    accuracy: float | None
    accuracy_s: float | None


class SeedRun(TypedDict, total=False):
    """An entry of `runs` of a TrainingRecord."""

    seed: int
    amp: str
    tf32: bool
    steps: int
    samples: int
    held_out_samples: int
    micro_batches: int
    compile_s: float | None
    peak_rss_bytes: int
    peak_device_bytes: int | None
    epochs: list[Epoch]


class TrainingRecord(Record, kw_only=True):
    """Some epochs of a model's recipe, repeated with each seed; the weights are not kept.

    `recipe` is the whole recipe, `activation` the replacement of the checkpoint's activation, None
    without replacement, `plan` the `epochs` and `seeds` of the configuration, `unit` the kind of
    sample (texts or images). `source_sha256` and `data_sha256` are those of the initial weights and
    of the manifest of the train split. There is no engine; `variant` is a placeholder.

    Each of `runs`, in the order of the seeds, holds
    - `seed`, `amp`, `tf32` (whether a GPU could round float32 to TF32), `steps` and `samples` (per
      epoch);
    - `held_out_samples`, the samples of the train split for the accuracy;
    - `micro_batches`, the number of micro-batches per batch, so that they fit in memory;
    - `compile_s`, None without torch.compile;
    - `peak_rss_bytes` of the process and `peak_device_bytes` that PyTorch allocated on the GPU,
      None on the CPU;
    - `epochs`, each with `seconds` of its steps (the first includes `compile_s`), `samples`,
      `samples_per_s`, `steps`, `foreign_cores` (cores that other programs used meanwhile), `loss`
      (mean over its steps), `accuracy` on the judged samples and `accuracy_s`.

    `lost_s` are the seconds of waiting for a quiet machine, `busiest` the cores that the busiest
    programs used, by name.
    """

    CONTENTS: ClassVar[dict[str, Any]] = {"runs": list[SeedRun]}

    variant: str = TRAINING
    device: str
    threads: int
    recipe: dict[str, Any]
    activation: str | None = None
    plan: dict[str, Any]
    unit: str | None = None
    source_sha256: str | None = None
    data_sha256: str | None = None
    runs: list[dict[str, Any]] = []
    lost_s: float = 0.0
    busiest: dict[str, float] = {}

"""Record of training: raw measurements of each epoch and seed."""

from typing import Any

from msgspec import Struct

from tightrope.records.record import TRAINING, TimedRecord


class Epoch(Struct, kw_only=True, forbid_unknown_fields=True):
    """An epoch of a training.

    `seconds` are those of its steps; of the first epoch they include `compile_s`. `foreign_cores`
    are the cores that other programs used meanwhile, `loss` is the mean over its steps, `accuracy`
    that on the judged samples.
    """

    seconds: float
    samples: int
    steps: int
    foreign_cores: float
    loss: float
    accuracy: float
    accuracy_s: float


class SeedRun(Struct, kw_only=True, forbid_unknown_fields=True):
    """The training with one seed; `steps` are those of all epochs, `samples` those of one.

    `tf32` is whether a GPU could round float32 to TF32, `held_out_samples` the samples of the train
    split for the accuracy, `micro_batches` the number of micro-batches per batch, so that they fit
    in memory. `compile_s` is None without torch.compile, `peak_device_bytes`, which PyTorch
    allocated on the GPU, on the CPU.
    """

    seed: int
    amp: str
    tf32: bool
    steps: int
    samples: int
    held_out_samples: int
    micro_batches: int
    compile_s: float | None = None
    peak_rss_bytes: int
    peak_device_bytes: int | None = None
    epochs: list[Epoch]


class TrainingRecord(TimedRecord, kw_only=True):
    """Some epochs of a model's recipe, repeated with each seed; the weights are not kept.

    `recipe` is the whole recipe, `activation` the replacement of the checkpoint's activation, None
    without replacement, `plan` the `epochs` and `seeds` of the configuration, `unit` the kind of
    sample (texts or images). `source_sha256` and `data_sha256` are those of the initial weights and
    of the manifest of the train split. There is no engine; `variant` is a placeholder. `runs` are
    in the order of the seeds.
    """

    variant: str = TRAINING
    device: str
    recipe: dict[str, Any]
    activation: str | None = None
    plan: dict[str, Any]
    unit: str | None = None
    source_sha256: str | None = None
    data_sha256: str | None = None
    runs: list[SeedRun] = []

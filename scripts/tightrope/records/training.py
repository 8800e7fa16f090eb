"""What a training took: each epoch of each seed, as it was measured."""

from dataclasses import dataclass, field
from typing import Any

from tightrope.records.record import TRAINING, Record


@dataclass(kw_only=True)
class TrainingRecord(Record):
    """Some epochs of a model's recipe, once with each seed; the weights were thrown away.

    `recipe` is the whole recipe that was followed, `activation` the one that took the place of the
    checkpoint's own, None for none, `plan` the `epochs` and `seeds` of the
    configuration, `unit` what a sample is (texts or images). `source_sha256` and `data_sha256` are
    those of the weights that it began with and of the train split. There is no engine, and the
    `variant` is a word in its place.

    Each of `runs`, in the order of the seeds, holds `seed`; `amp`, `steps`, `samples` (an epoch)
    and `judged_samples` (of the train split, for the accuracy); `parts`, into how many a batch was
    cut to fit; `compile_s`, None without torch.compile; `peak_rss_bytes` of the process and
    `peak_device_bytes` that PyTorch had of the GPU, None on the CPU; and `epochs`, each with
    `seconds` of its steps (the first with `compile_s`), `samples`, `samples_per_s`, `steps`,
    `foreign_cores` (what other programs used of the processors in these), `loss` (the mean over
    its steps), `accuracy` on the judged samples and `accuracy_s`. `lost_s` are the seconds of
    waiting for a quiet machine, `loudest` the cores that the loudest programs used, by name.
    """

    variant: str = TRAINING
    device: str
    threads: int
    recipe: dict[str, Any]
    activation: str | None = None
    plan: dict[str, Any]
    unit: str | None = None
    source_sha256: str | None = None
    data_sha256: str | None = None
    runs: list[dict[str, Any]] = field(default_factory=list)
    lost_s: float = 0.0
    loudest: dict[str, float] = field(default_factory=dict)

"""Training recipe: its defaults, `auto` on this machine, and smaller batches if memory runs out."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from tightrope.errors import TightropeError, WorkFailed, is_out_of_memory
from tightrope.jobs.child import LIMIT_OF_MEMORY, PASSED_ON, Child, Limits, catch_expected_errors

Recipe = dict[str, Any]
Work = Callable[[int], Any]
# fraction of the machine's memory that training may use
MEMORY_FRACTION = 0.9
# loaded by name, so that only trainings with `qat` depend on it
QUANTIZATION_AWARE = "tightrope/training/quantization_aware"
DEFAULTS: Recipe = {
    "epochs": 1,
    "batch": 32,
    "learning_rate": 2e-4,
    "weight_decay": 0.01,
    "warmup": 0.1,
    "sequence": 64,
    "frozen": [],
    "sparsity": None,
    "compile": False,
    "amp": "auto",
    "channels_last": False,
    "augmentation": "off",
    "device": "auto",
    "seed": None,
    "validate": False,
    "out_of_memory": "stop",
}


def whole_recipe(recipe: Recipe, seed: int) -> Recipe:
    """Return `recipe` with every default; `seed` is the model's, used if the recipe has none."""
    whole = {**DEFAULTS, **recipe}
    return {**whole, "seed": seed if whole["seed"] is None else whole["seed"]}


def resolve_amp(amp: str, device: str) -> str:
    """Resolve `auto` to `bf16` if the device supports it natively, else `off`."""
    if amp != "auto":
        return amp
    if device == "cuda":
        import torch

        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "off"
    try:
        flags = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        flags = set()
    return "bf16" if flags & {"avx512_bf16", "amx_bf16", "bf16"} else "off"


def run_training(
    work: Work, recipe: Recipe | None, *, limits: Limits, began: float | None = None
) -> Any:
    """Run `work(micro_batches)` in a child process and return its value.

    `micro_batches` is their number per batch, at first 1. If a batch runs out of memory and
    the recipe says to halve it, the work is retried with twice as many; without a recipe there are
    no batches. Time counts from `began` (`time.monotonic()`), or from now. Raises WorkFailed, also
    for a TightropeError of the work, except the errors in PASSED_ON, which are raised unchanged.
    """
    asked, recipe = recipe, {**DEFAULTS, **(recipe or {})}
    micro_batches, began = 1, time.monotonic() if began is None else began
    # stay below physical memory: the kernel's OOM killer does not report why it killed
    usable = MEMORY_FRACTION * psutil.virtual_memory().total
    limits = replace(limits, memory_bytes=min(limits.memory_bytes, usable))
    while True:
        try:
            with Child(catch_expected_errors(work), limits, began=began) as child:
                value, error = child.ask(micro_batches)
        except WorkFailed as failed:
            # a SIGKILL may have other causes
            told = is_out_of_memory(failed) and "killed by" not in failed.reason
            if asked is None or not (told or LIMIT_OF_MEMORY in failed.reason):
                raise
            if recipe["out_of_memory"] == "stop" or 2 * micro_batches > recipe["batch"]:
                raise WorkFailed(
                    out_of_memory_message(failed, recipe["batch"], micro_batches), transient=False
                ) from None
            micro_batches *= 2
            continue
        if error is None:
            return value
        raise error if isinstance(error, PASSED_ON) else WorkFailed(str(error), transient=False)


def out_of_memory_message(failed: WorkFailed, batch: int, micro_batches: int) -> str:
    """Return the error message for a batch that does not fit in memory, with a remedy."""
    reason = failed.reason.partition(";")[0]
    if micro_batches == 1 and batch > 1:
        return (
            f"a batch of {batch} does not fit in memory ({reason}); lower train.batch = {batch}, "
            "or say train.out_of_memory: halve"
        )
    return (
        f"not even {-(-batch // micro_batches)} of a batch of {batch} fit in memory ({reason}); "
        "take a smaller model or input, or more memory"
    )


def train_or_stop(work: Work, recipe: Recipe | None, *, model: str, limits: Limits) -> None:
    """Run `run_training` for a model that must be trained: any failure is a TightropeError."""
    try:
        run_training(work, recipe, limits=limits)
    except WorkFailed as failed:
        done = "not trained: " if recipe else ""
        raise TightropeError(f"{model}: {done}{failed.reason}") from None

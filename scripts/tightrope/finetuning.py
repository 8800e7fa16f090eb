"""Fine-tune a text classifier: length-bucketed batches, a one-cycle schedule, bf16 or fp32."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
from tokenizers import Tokenizer
from tqdm import tqdm

from tightrope.inputs import Arrays, Example, stack
from tightrope.text_inputs import text_arrays

DEFAULTS = {
    "epochs": 1,
    "batch": 32,
    "learning_rate": 2e-4,
    "weight_decay": 0.01,
    "warmup": 0.1,
    "sequence": 64,
    "precision": "auto",
}
# Batches that are sorted by length together: enough to save padding, few enough to stay mixed.
WINDOW = 32
LINES = 10


def fine_tune(
    model: Any,
    tokenizer: Tokenizer,
    examples: list[Example],
    recipe: dict[str, Any],
    *,
    seed: int,
    terminal: TextIO,
) -> dict[str, Any]:
    """Train `model` in place on the labelled texts; returns steps, precision and losses."""
    recipe = {**DEFAULTS, "seed": seed, **recipe}
    tokenizer.no_padding()
    tokenizer.enable_truncation(recipe["sequence"])
    encoded = tokenizer.encode_batch([example["text"] for example in examples])
    rows = [text_arrays(item.ids) for item in encoded]
    labels = np.array([example["label"] for example in examples])
    precision = chosen_precision(recipe["precision"])
    batches = list(draw_batches([len(row["input_ids"]) for row in rows], recipe))
    losses = []
    report = Report(len(batches), terminal)
    prepare_layers(model)
    step = training_step(model, recipe, steps=len(batches), precision=precision)
    for indices in tqdm(batches, desc="fine-tuning", mininterval=2):
        batch: Arrays = stack([rows[index] for index in indices])
        losses.append(step(batch, labels[indices]))
        report(losses)
    return {"steps": len(batches), "precision": precision, "losses": averaged(losses)}


def draw_batches(lengths: list[int], recipe: dict[str, Any]) -> Iterator[list[int]]:
    """Indices of each batch of all epochs: texts of about one length together, in mixed order."""
    size = recipe["batch"]
    generator = random.Random(recipe["seed"])
    left = max(1, round(recipe["epochs"] * len(lengths)))
    while left > 0:
        order = generator.sample(range(len(lengths)), len(lengths))[:left]
        left -= len(order)
        for start in range(0, len(order), size * WINDOW):
            window = sorted(order[start : start + size * WINDOW], key=lambda i: (lengths[i], i))
            batches = [window[i : i + size] for i in range(0, len(window), size)]
            generator.shuffle(batches)
            yield from batches


def prepare_layers(model: Any) -> None:
    """Make the layers fit for a short training on a CPU; the weights stay as they are.

    Dropout is left out: in a single epoch it cost 2 points of accuracy, and time. Attention is
    written out, because with the fused kernel a step takes half as long again.
    """
    model.eval()
    model.set_attn_implementation("eager")


def training_step(model: Any, recipe: dict[str, Any], *, steps: int, precision: str) -> Any:
    """A function that learns from one batch and returns its loss."""
    decayed = [weight for weight in model.parameters() if weight.ndim > 1]
    plain = [weight for weight in model.parameters() if weight.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": recipe["weight_decay"]},
        {"params": plain, "weight_decay": 0.0},
    ]
    rate = recipe["learning_rate"]
    optimizer = torch.optim.AdamW(groups, lr=rate, fused=True)
    warmup = min(max(recipe["warmup"], 1 / steps), 1 - 1 / steps) if steps > 2 else 0.5
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=rate, total_steps=steps + 1, pct_start=warmup, cycle_momentum=False
    )
    mixed = torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16")

    def step(batch: Arrays, labels: np.ndarray) -> float:
        with mixed:
            inputs = {name: torch.from_numpy(array) for name, array in batch.items()}
            logits = model(**inputs).logits  # [batch, classes]
        loss = torch.nn.functional.cross_entropy(logits.float(), torch.from_numpy(labels))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss.item()

    return step


def chosen_precision(asked: str) -> str:
    """bf16 for auto where the CPU multiplies in it, else fp32; what was asked for otherwise."""
    if asked != "auto":
        return asked
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        words = set()
    return "bf16" if words & {"avx512_bf16", "amx_bf16", "bf16"} else "fp32"


def averaged(losses: list[float]) -> list[float]:
    """Mean losses of ten equal parts of the training."""
    return [round(float(np.mean(part)), 6) for part in np.array_split(losses, LINES) if len(part)]


class Report:
    """A line on the terminal for each tenth of the training, with the time that is left."""

    def __init__(self, steps: int, terminal: TextIO) -> None:
        """Start the clock of `steps` steps."""
        self.steps, self.terminal, self.start = steps, terminal, time.perf_counter()
        self.marks = {max(1, round(steps * part / LINES)) for part in range(1, LINES + 1)}

    def __call__(self, losses: list[float]) -> None:
        """Tell of the step just done, where a tenth ends with it."""
        done = len(losses)
        if done not in self.marks:
            return
        left = (time.perf_counter() - self.start) / done * (self.steps - done)
        loss = float(np.mean(losses[-max(1, self.steps // LINES) :]))
        print(
            f"fine-tuning: step {done:,} of {self.steps:,}, loss {loss:.2f}, "
            f"about {duration(left)} left",
            file=self.terminal,
            flush=True,
        )


def duration(seconds: float) -> str:
    """Seconds in words: 40 s, 3 min, 1 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"

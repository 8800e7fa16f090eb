"""One step of a training: mixed precision, torch.compile, AdamW and a one-cycle schedule."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.machine.compiler import missing_compiler
from tightrope.training.recipe import Recipe

AMP = {"off": torch.bfloat16, "bf16": torch.bfloat16, "fp16": torch.float16}
Batch = tuple[Arrays, np.ndarray]
Tensors = dict[str, torch.Tensor]


def prepare_device(device: str, threads: int) -> None:
    """Set the threads of the CPU, and take only algorithms whose results repeat.

    Raises TightropeError where `device` is cuda and PyTorch sees no GPU.
    """
    # read when cuBLAS is first called; without it, it refuses to repeat its results
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(threads)
    # on a GPU some layers, as average pooling, have none: then it is said in the log
    torch.use_deterministic_algorithms(True, warn_only=device == "cuda")
    if device == "cuda":
        if not torch.cuda.is_available():
            raise TightropeError(
                "train.device = cuda: PyTorch sees no GPU here; run where there is one, or say cpu"
            )
        torch.backends.cudnn.benchmark = False


class Trainer:
    """A model on its device with all that a step of its training changes.

    `amp` is the type of autocast, or off. fp16 scales its gradients, so that small ones do not
    vanish, and leaves out a step in which they overflow.
    """

    def __init__(
        self, model: Any, recipe: Recipe, *, steps: int, device: str, amp: str, dynamic: bool
    ) -> None:
        """Put `model` on the device; compiled, one program is for every shape with `dynamic`.

        Raises TightropeError where it is to be compiled and there is no compiler.
        """
        if recipe["compile"] and (missing := missing_compiler()):
            raise TightropeError(f"train.compile: {missing}")
        self.device = device
        self.layout = torch.channels_last if recipe["channels_last"] else torch.preserve_format
        self.model = model.to(device=device, memory_format=self.layout)
        self.forward = torch.compile(model, dynamic=dynamic) if recipe["compile"] else model
        self.optimizer, self.schedule = optimizer_of(model, recipe, steps)
        self.scaler = torch.amp.GradScaler(device, enabled=amp == "fp16")
        self.mixed = torch.autocast(device, dtype=AMP[amp], enabled=amp != "off")

    def learn(self, parts: list[Batch]) -> torch.Tensor:
        """Learn from the parts of one batch; the mean loss over all of it, float32 []."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = sum(self.gradients(parts))
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        return loss

    def gradients(self, parts: list[Batch]) -> Iterator[torch.Tensor]:
        """Add the gradients of each part; yields its share of the mean loss."""
        samples = sum(len(labels) for _, labels in parts)
        for batch, labels in parts:
            wanted = torch.from_numpy(labels).to(self.device, non_blocking=True)
            with self.mixed:
                logits = self.forward(**self.inputs(batch)).logits  # [batch, classes]
            loss = torch.nn.functional.cross_entropy(logits.float(), wanted)
            loss = loss * (len(labels) / samples)
            self.scaler.scale(loss).backward()
            yield loss.detach()

    def inputs(self, batch: Arrays) -> Tensors:
        """The arrays as tensors on the device, images in the layout of the model."""
        tensors = {name: torch.from_numpy(array) for name, array in batch.items()}
        return {
            name: tensor.to(
                self.device,
                non_blocking=True,
                memory_format=self.layout if tensor.ndim == 4 else torch.preserve_format,
            )
            for name, tensor in tensors.items()
        }

    def compile(self, batches: Iterable[Batch]) -> None:
        """Have the program of each of the batches compiled; what is trained stays as it is.

        A program may depend on the first shape that it was made for: made in this way it is the
        same where a training goes on as where it began.
        """
        kept = {name: buffer.clone() for name, buffer in self.model.named_buffers()}
        gpus = [torch.cuda.current_device()] if self.device == "cuda" else []
        with torch.random.fork_rng(devices=gpus):
            for batch in batches:
                list(self.gradients([batch]))
        self.optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for name, buffer in self.model.named_buffers():
                buffer.copy_(kept[name])

    @torch.no_grad()
    def accuracy(self, batches: Iterable[Batch]) -> float:
        """The share of right answers, in fp32 and not compiled; the training is as before."""
        training, right, samples = self.model.training, 0, 0
        self.model.eval()
        for batch, labels in batches:
            answers = self.model(**self.inputs(batch)).logits.argmax(-1).cpu().numpy()
            right, samples = right + int((answers == labels).sum()), samples + len(labels)
        self.model.train(training)
        return right / samples

    def wait(self) -> None:
        """Return when all steps are done."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """All that a step changes: tensors, and values of the schedule and the scaler as JSON."""
        tensors = {f"model.{name}": value for name, value in self.values()}
        for number, weight in enumerate(self.weights()):
            for name, value in self.optimizer.state.get(weight, {}).items():
                tensors[f"optimizer.{number}.{name}"] = value
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        facts = {"schedule": self.schedule.state_dict(), "scaler": self.scaler.state_dict()}
        return {name: value.detach().contiguous() for name, value in tensors.items()}, facts

    @torch.no_grad()
    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Go on from a `state` of the same training."""
        for name, value in self.values():
            value.copy_(tensors[f"model.{name}"])
        for number, weight in enumerate(self.weights()):
            begins = f"optimizer.{number}."
            found = {name: tensors[name] for name in tensors if name.startswith(begins)}
            state = self.optimizer.state[weight]
            for name, value in found.items():
                # moments lie in memory as the weights do, which the fused optimizer relies on
                like = torch.empty_like(weight) if value.shape == weight.shape else value
                place = like.to(self.device, copy=True)
                state[name.removeprefix(begins)] = place.copy_(value)
        self.schedule.load_state_dict(facts["schedule"])
        for group, rate in zip(self.groups(), self.schedule.get_last_lr(), strict=True):
            group["lr"] = rate
        if facts["scaler"]:
            self.scaler.load_state_dict(facts["scaler"])
        torch.set_rng_state(tensors["random.cpu"])
        if self.device == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"])

    def values(self) -> list[tuple[str, torch.Tensor]]:
        """Name and tensor of each weight and buffer, each once."""
        return [*self.model.named_parameters(), *self.model.named_buffers()]

    def weights(self) -> list[torch.Tensor]:
        """The weights in the order of the optimizer."""
        return [weight for group in self.groups() for weight in group["params"]]

    def groups(self) -> list[dict[str, Any]]:
        """The groups of the optimizer."""
        return self.optimizer.param_groups

    def release(self) -> None:
        """Give the model back as it came: on the CPU, its weights contiguous, no gradients."""
        self.optimizer.zero_grad(set_to_none=True)
        self.model.to(device="cpu", memory_format=torch.contiguous_format)


def optimizer_of(model: Any, recipe: Recipe, steps: int) -> tuple[Any, Any]:
    """AdamW and a one-cycle schedule of so many steps; vectors do not decay, frozen ones stay."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    decayed = [weight for weight in trained if weight.ndim > 1]
    plain = [weight for weight in trained if weight.ndim <= 1]
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
    return optimizer, schedule

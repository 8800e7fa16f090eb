"""Training step: mixed precision, torch.compile, AdamW and a one-cycle schedule."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays
from tightrope.machine.lacks import missing_compiler
from tightrope.model.classifier import output_layer
from tightrope.training.recipe import Recipe

AMP = {"off": torch.bfloat16, "bf16": torch.bfloat16, "fp16": torch.float16}
# inputs and targets: labels, and with a teacher what it says, see `training.teaching`
Batch = tuple[Arrays, Arrays]
LABELS = "labels"
Tensors = dict[str, torch.Tensor]
Targets = Mapping[str, torch.Tensor]
# steps of a training between two choices of the weights that are zero
EVERY = 16


def prepare_device(device: str, threads: int) -> None:
    """Set the number of CPU threads, and require deterministic algorithms and whole float32.

    Without `amp` a GPU computes in float32, not in TF32, to which PyTorch rounds convolutions by
    default. The weights of two trainings on a GPU may still differ: some kernels have no
    deterministic algorithm.

    Raises TightropeError if `device` is cuda and PyTorch sees no GPU.
    """
    # read at the first cuBLAS call; without it cuBLAS has no deterministic algorithms
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(threads)
    # on a GPU some layers, such as average pooling, have none: log a warning for them
    torch.use_deterministic_algorithms(True, warn_only=device == "cuda")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    if device == "cuda":
        if not torch.cuda.is_available():
            raise TightropeError(
                "train.device = cuda: PyTorch sees no GPU here; run where there is one, or say cpu"
            )
        torch.backends.cudnn.benchmark = False


def rounds_to_tf32() -> bool:
    """Return whether PyTorch may round products or convolutions in float32 to TF32 on a GPU."""
    return torch.backends.cudnn.allow_tf32 or torch.backends.cuda.matmul.allow_tf32


class LabelLoss(torch.nn.Module):
    """Mean cross-entropy of the labels. `arguments` are those of the classifier's call."""

    arguments: Mapping[str, Any] = {}

    def forward(self, outputs: Any, targets: Targets) -> torch.Tensor:
        """Return the loss, float32 []; `labels` are int64 [batch]."""
        return cross_entropy(outputs.logits.float(), targets[LABELS])


class Trainer:
    """A model on its device with its optimizer, schedule and gradient scaler.

    `amp` is the autocast dtype, or off. fp16 scales its gradients so that small ones do not
    underflow, and skips a step in which they overflow.
    """

    def __init__(
        self,
        model: Any,
        recipe: Recipe,
        *,
        steps: int,
        device: str,
        amp: str,
        dynamic: bool,
        objective: Any = None,
    ) -> None:
        """Move `model` to the device; if compiled, `dynamic` uses one program for every shape.

        `objective` is the loss, of the labels if None; its own weights are trained too.

        Raises TightropeError if the recipe compiles and there is no compiler.
        """
        if recipe["compile"] and (missing := missing_compiler()):
            raise TightropeError(f"train.compile: {missing}")
        self.device = device
        self.layout = torch.channels_last if recipe["channels_last"] else torch.preserve_format
        self.model = model.to(device=device, memory_format=self.layout)
        self.forward = torch.compile(model, dynamic=dynamic) if recipe["compile"] else model
        self.objective = (objective or LabelLoss()).to(device)
        self.trained = [*model.parameters(), *self.objective.parameters()]
        self.optimizer, self.schedule = optimizer_of(self.trained, recipe, steps)
        share = recipe["sparsity"]
        self.sparse = SparseTraining(model, share, steps=steps) if share else None
        self.scaler = torch.amp.GradScaler(device, enabled=amp == "fp16")
        self.mixed = torch.autocast(device, dtype=AMP[amp], enabled=amp != "off")

    def learn(self, micro_batches: list[Batch]) -> torch.Tensor:
        """Train on the micro-batches of one batch; return the batch's mean loss, float32 []."""
        self.optimizer.zero_grad(set_to_none=True)
        if self.sparse:
            self.sparse.before_step()
        loss = sum(self.gradients(micro_batches), torch.zeros((), device=self.device))
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        if self.sparse:
            self.sparse.after_step(self.schedule.last_epoch)
        return loss

    def gradients(self, micro_batches: list[Batch]) -> Iterator[torch.Tensor]:
        """Accumulate the gradients of each micro-batch; yield its share of the mean loss."""
        samples = sum(len(targets[LABELS]) for _, targets in micro_batches)
        for batch, targets in micro_batches:
            with self.mixed:
                outputs = self.forward(**self.inputs(batch), **self.objective.arguments)
            loss = self.objective(outputs, self.inputs(targets))
            loss = loss * (len(targets[LABELS]) / samples)
            self.scaler.scale(loss).backward()
            yield loss.detach()

    def inputs(self, batch: Arrays) -> Tensors:
        """Return the arrays as tensors on the device, images in the model's memory format."""
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
        """Compile for the shape of each batch; weights, buffers and random state do not change.

        A compiled program may depend on the first shape it was compiled for. Compiling in a fixed
        order gives a resumed run the same programs as an uninterrupted one.
        """
        buffers = {name: buffer.clone() for name, buffer in self.model.named_buffers()}
        gpus = [torch.cuda.current_device()] if self.device == "cuda" else []
        with torch.random.fork_rng(devices=gpus):
            for batch in batches:
                list(self.gradients([batch]))
        self.optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for name, buffer in self.model.named_buffers():
                buffer.copy_(buffers[name])

    @torch.no_grad()
    def accuracy(self, batches: Iterable[Batch]) -> float:
        """Return the accuracy, in fp32 and not compiled; restores the training mode."""
        training, correct, samples = self.model.training, 0, 0
        self.model.eval()
        for batch, targets in batches:
            labels = targets[LABELS]
            predictions = self.model(**self.inputs(batch)).logits.argmax(-1).cpu().numpy()
            correct, samples = correct + int((predictions == labels).sum()), samples + len(labels)
        self.model.train(training)
        return correct / samples

    def wait(self) -> None:
        """Wait until all steps are finished on the device."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return all that a step changes: tensors, and schedule and scaler values as JSON."""
        tensors = dict(self.values())
        for number, weight in enumerate(self.weights()):
            for name, value in self.optimizer.state.get(weight, {}).items():
                tensors[f"optimizer.{number}.{name}"] = value
        tensors["random.cpu"] = torch.get_rng_state()
        if self.device == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        values = {"schedule": self.schedule.state_dict(), "scaler": self.scaler.state_dict()}
        return {name: value.detach().contiguous() for name, value in tensors.items()}, values

    @torch.no_grad()
    def restore(self, tensors: Tensors, values: dict[str, Any]) -> None:
        """Resume from the `state` of the same training run."""
        for name, value in self.values():
            value.copy_(tensors[name])
        for number, weight in enumerate(self.weights()):
            prefix = f"optimizer.{number}."
            saved = {name: tensors[name] for name in tensors if name.startswith(prefix)}
            state = self.optimizer.state[weight]
            for name, value in saved.items():
                # the fused optimizer needs moments in the memory format of their weights
                template = torch.empty_like(weight) if value.shape == weight.shape else value
                moment = template.to(self.device, copy=True)
                state[name.removeprefix(prefix)] = moment.copy_(value)
        self.schedule.load_state_dict(values["schedule"])
        for group, rate in zip(
            self.optimizer.param_groups, self.schedule.get_last_lr(), strict=True
        ):
            group["lr"] = rate
        if values["scaler"]:
            self.scaler.load_state_dict(values["scaler"])
        torch.set_rng_state(tensors["random.cpu"])
        if self.device == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"])

    def values(self) -> list[tuple[str, torch.Tensor]]:
        """Return name and tensor of each weight and buffer, without duplicates."""
        return [
            (f"{owner}.{name}", value)
            for owner, module in (("model", self.model), ("objective", self.objective))
            for name, value in (*module.named_parameters(), *module.named_buffers())
        ]

    def weights(self) -> list[torch.Tensor]:
        """Return the weights in the order of the optimizer."""
        return [weight for group in self.optimizer.param_groups for weight in group["params"]]

    def release(self) -> None:
        """Move the model back to the CPU, weights contiguous and without gradients."""
        self.optimizer.zero_grad(set_to_none=True)
        self.model.to(device="cpu", memory_format=torch.contiguous_format)


def optimizer_of(
    weights: Iterable[torch.nn.Parameter], recipe: Recipe, steps: int
) -> tuple[Any, Any]:
    """Return AdamW over trainable weights (no decay of vectors) and a one-cycle schedule."""
    trained, rate = [weight for weight in weights if weight.requires_grad], recipe["learning_rate"]
    matrices = [one for one in trained if one.ndim > 1]
    vectors = [one for one in trained if one.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": recipe["weight_decay"]},
        {"params": vectors, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=rate, fused=True)
    warmup = min(max(recipe["warmup"], 1 / steps), 1 - 1 / steps) if steps > 2 else 0.5
    total = max(steps, 2) + 1  # it divides by one less than half of them
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=rate, total_steps=total, pct_start=warmup, cycle_momentum=False
    )
    return optimizer, schedule


class SparseTraining:
    """Keeps a share of the weights of linear layers at zero, those of smallest magnitude.

    There are ever more of them, chosen every few steps. What is zero follows from the weights
    alone, so that a resumed training goes on as before. The last layer and embeddings stay dense,
    as in oBERT (Kurtic et al. 2022, arXiv 2203.07259, section 4).
    """

    def __init__(self, model: Any, share: float, *, steps: int) -> None:
        """Start or go on with a training of so many `steps`."""
        last = output_layer(model)
        layers = [one for one in model.modules() if isinstance(one, torch.nn.Linear)]
        self.weights = [layer.weight for layer in layers if layer is not last]
        self.share, self.steps = share, steps
        self.masks: list[torch.Tensor] | None = None

    def before_step(self) -> None:
        """Remember what is zero."""
        self.masks = self.masks or [weight != 0 for weight in self.weights]

    @torch.no_grad()
    def after_step(self, step: int) -> None:
        """Set to zero what was zero, and more where it is time; `step` counts from 1."""
        if step % EVERY == 0 or step == self.steps:
            share = share_at(step / self.steps, self.share)
            self.masks = [
                kept(weight.abs(), round(share * weight.numel())) for weight in self.weights
            ]
        for weight, mask in zip(self.weights, self.masks or (), strict=True):
            weight.mul_(mask)


def kept(sizes: torch.Tensor, count: int) -> torch.Tensor:
    """Return which weights are left, bool [out, in], without `count` of the least magnitude."""
    return sizes >= 0 if count == 0 else sizes > sizes.flatten().kthvalue(count).values


def share_at(progress: float, share: float) -> float:
    """Return the share of zeros after this part of a training, from 0 to `share`.

    It grows by a cubic schedule until two thirds of the training, then stays (Zhu & Gupta 2017,
    "To prune, or not to prune", equation 1).
    """
    done = min(1.0, 1.5 * progress)
    return share * (1 - (1 - done) ** 3)

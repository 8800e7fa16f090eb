"""The loss of a training step: cross-entropy, and the distance from a teacher's outputs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch.nn.functional import cross_entropy, kl_div, log_softmax

# targets of a batch: `labels`, and with a teacher `teacher_logits` and `teacher_states`
LABELS, LOGITS, STATES, TOKENS = "labels", "teacher_logits", "teacher_states", "teacher_tokens"
# the label of an example without one, see torch.nn.functional.cross_entropy
UNLABELLED = -100
Targets = Mapping[str, torch.Tensor]


class DistillationWeights(NamedTuple):
    """How the parts of the loss are weighted, see `DistillationLoss`."""

    temperature: float
    labels: float
    hidden: float


class LabelLoss(torch.nn.Module):
    """Mean cross-entropy of the labels. `arguments` are those of the classifier's call."""

    arguments: Mapping[str, Any] = {}

    def forward(self, outputs: Any, targets: Targets) -> torch.Tensor:
        """Return the loss, float32 []; `labels` are int64 [batch]."""
        return cross_entropy(outputs.logits.float(), targets[LABELS])


class DistillationLoss(torch.nn.Module):
    """Distance of a student from its teacher, in logits and in the states of the last layer.

    The mean over the batch of `labels` x cross-entropy + (1 - `labels`) x `temperature`^2 x
    KL(teacher || student) of the logits over `temperature` (Hinton et al. 2015, "Distilling the
    Knowledge in a Neural Network", section 2) + `hidden` x ||student - teacher||^2 / ||teacher||^2
    of each token's state, as in ZipLM (Kurtic et al. 2023, arXiv 2302.04089, section 3.3). An
    example without a label has no cross-entropy. A student of another hidden size is projected by
    weights that are trained with it and thrown away (Jiao et al. 2020, "TinyBERT", equation 8).
    """

    def __init__(self, weights: DistillationWeights, sizes: tuple[int, int] | None) -> None:
        """`sizes` are the hidden sizes of student and teacher, None without states."""
        super().__init__()
        self.weights = weights
        self.arguments = {} if sizes is None else {"output_hidden_states": True}
        self.project: torch.nn.Module = torch.nn.Identity()
        if sizes is not None and sizes[0] != sizes[1]:
            self.project = torch.nn.Linear(*sizes, bias=False)

    def forward(self, outputs: Any, targets: Targets) -> torch.Tensor:
        """Return the loss, float32 [].

        `labels` are int64 [batch], `teacher_logits` float32 [batch, classes], `teacher_states`
        float16 [batch, tokens, hidden], of which `teacher_tokens`, bool [batch, tokens], are no
        padding.
        """
        logits, labels = outputs.logits.float(), targets[LABELS]
        hard = cross_entropy(logits, labels, ignore_index=UNLABELLED, reduction="sum")
        soft = divergence(logits, targets[LOGITS], self.weights.temperature)
        share = self.weights.labels
        loss = share * hard / len(labels) + (1 - share) * soft
        if STATES in targets:
            loss = loss + self.weights.hidden * self.distance(outputs, targets)
        return loss

    def distance(self, outputs: Any, targets: Targets) -> torch.Tensor:
        """Return the mean over examples of the mean over tokens of the states' distance."""
        ours = self.project(tokens_of(outputs.hidden_states[-1]).float())
        theirs, real = targets[STATES].float(), targets[TOKENS]
        # padding is zero in `theirs`
        size = theirs.square().sum(-1).clamp_min(torch.finfo(torch.float32).tiny)
        distances = (ours - theirs).square().sum(-1) / size
        return (torch.where(real, distances, 0).sum(-1) / real.sum(-1)).mean()


def divergence(logits: torch.Tensor, teacher: torch.Tensor, temperature: float) -> torch.Tensor:
    """Return temperature^2 x KL(teacher || student), the mean over the batch, [batch, classes]."""
    ours, theirs = (log_softmax(one / temperature, -1) for one in (logits, teacher))
    return temperature**2 * kl_div(ours, theirs, log_target=True, reduction="batchmean")


def tokens_of(states: torch.Tensor) -> torch.Tensor:
    """Return states as [batch, tokens, hidden]: the places of [batch, hidden, height, width]."""
    return states.flatten(2).transpose(1, 2) if states.ndim == 4 else states

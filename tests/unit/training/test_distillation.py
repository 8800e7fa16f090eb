"""Students learn from a real teacher's outputs, which its job has written."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from splits import split_of
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, TeacherManifest
from tightrope.errors import TightropeError
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.training.teaching import (
    DistillationLoss,
    DistillationWeights,
    TeacherSettings,
    read_teaching,
    write_teacher_outputs,
)
from tiny_training import RECIPE, TINY, prepare_source, prepare_texts, train
from transformers import AutoModelForSequenceClassification

DISTILL = {"from": "large", "temperature": 2.0, "labels": 0.5, "hidden": 1.0, "unlabelled": None}
ONCE = {**RECIPE, "epochs": 1}
SMALL = TINY.replace("num_hidden_layers=2", "num_hidden_layers=1")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare_source(tmp_path_factory.mktemp("small"), SMALL)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, trained: Path, texts: Path) -> Path:
    return ask(tmp_path_factory.mktemp("outputs"), trained, texts)


def ask(folder: Path, teacher: Path, texts: Path, **changes: Any) -> Path:
    """Run the teacher on the train split with these settings; return the manifest."""
    settings = {"teacher": "large", "sequence": 32, "hidden": True, "threads": 1, **changes}
    write_teacher_outputs(
        folder / "outputs.json",
        TeacherSettings(**settings),
        teacher=teacher,
        data=split_of(texts, "train"),
        splits=[split_of(texts, "evaluation")],
    )
    return folder / "outputs.json"


def states_of(
    checkpoint: Path, rows: list[dict[str, np.ndarray]]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Logits and last hidden states of each row alone."""
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint.parent).eval()
    found = []
    for row in rows:
        inputs = {name: torch.from_numpy(array)[None] for name, array in row.items()}
        with torch.inference_mode():
            outputs = model(**inputs, output_hidden_states=True)
        found.append((outputs.logits[0].numpy(), outputs.hidden_states[-1][0].numpy()))
    return found


def test_outputs_are_those_of_the_teacher(outputs: Path, trained: Path, texts: Path) -> None:
    teaching = read_teaching(outputs, DISTILL)
    assert teaching.states is not None
    document = read_manifest(outputs, TeacherManifest)
    assert (document["rows"], document["unlabelled"], document["hidden"]) == (120, 0, 32)
    rows = load_encoder(trained, max_sequence=32)(read_split(split_of(texts, "train")))
    indices = (0, 7, 119)
    known = states_of(trained, [rows[index] for index in indices])
    for index, (expected, states) in zip(indices, known, strict=True):
        np.testing.assert_allclose(teaching.logits[index], expected, atol=1e-5)
        kept = teaching.states[teaching.starts[index] :][: teaching.tokens[index]]
        np.testing.assert_allclose(kept, states, atol=5e-3)
    # a batch has those of its rows, padded to the longest
    part = teaching.part([5, 60, 100]).batch([2, 0])
    assert part["teacher_logits"].shape == (2, 2)
    counts = teaching.tokens[[100, 5]]
    assert part["teacher_tokens"].sum(1).tolist() == counts.tolist()
    assert part["teacher_states"].shape == (2, counts.max(), 32)
    np.testing.assert_array_equal(
        part["teacher_states"][1, : counts[1]], teaching.states[teaching.starts[5] :][: counts[1]]
    )


def test_a_student_comes_closer_than_by_labels_alone(outputs, trained, small, texts, tmp_path):
    alone = train(tmp_path / "alone", small, texts, RECIPE)
    distill = {**DISTILL, "labels": 0}
    student = train(tmp_path / "student", small, texts, RECIPE, teacher=outputs, distill=distill)
    rows = load_encoder(trained, max_sequence=32)(read_split(split_of(texts, "evaluation")))[:8]

    def distance(one: Path) -> float:
        pairs = zip(states_of(one, rows), states_of(trained, rows), strict=True)
        return float(np.mean([np.square(ours[1] - theirs[1]).mean() for ours, theirs in pairs]))

    assert distance(student) < 0.5 * distance(alone)
    assert read_manifest(student, CheckpointManifest)["distill"] == distill
    assert not any("project" in name for name in saved_weights(student))


def saved_weights(checkpoint: Path) -> list[str]:
    with safe_open(checkpoint.parent / "model.safetensors", "pt") as file:
        return list(file.keys())


def test_a_narrower_student_has_the_tokens_of_its_teacher(outputs, trained, texts, tmp_path):
    narrow = SMALL.replace("hidden_size=32", "hidden_size=16").replace("vocab_size=200&", "")
    source = prepare_source(tmp_path / "source", narrow)
    student = train(tmp_path / "student", source, texts, ONCE, teacher=outputs, distill=DISTILL)
    assert read_manifest(student, CheckpointManifest)["vocabulary"] == 200
    same = [(one.parent / "tokenizer.json").read_text() for one in (student, trained)]
    assert same[0] == same[1]


def test_unlabelled_texts_are_learnt_but_not_those_that_are_judged(trained, small, texts, tmp_path):
    judged = read_split(split_of(texts, "evaluation"))[0]["text"]
    known = read_split(split_of(texts, "train"))[0]["text"]
    lines = ["note", "a fine day 7", judged.upper(), known, "an awful day 8", "A fine  DAY 7"]
    (tmp_path / "notes.csv").write_text("\n".join(f'"{line}"' for line in lines))
    notes, folder = f"files:{tmp_path}/notes.csv", tmp_path / "outputs"
    outputs = ask(folder, trained, texts, unlabelled=notes, column="note")
    assert read_manifest(outputs, TeacherManifest)["unlabelled"] == 2
    options = {"teacher": outputs, "distill": {**DISTILL, "labels": 0.3}}
    student = train(tmp_path / "student", small, texts, {**ONCE, "validate": True}, **options)
    training = read_manifest(student, CheckpointManifest)["training"]
    assert training is not None
    # a tenth of the 120 labelled texts, none of the two others
    assert (training["samples"], training["held_out_samples"]) == (110, 12)
    (tmp_path / "notes.csv").write_text(f"text\n{known}")
    with pytest.raises(TightropeError, match="every text occurs in the data of the model"):
        ask(folder, trained, texts, unlabelled=notes)


def test_a_teacher_of_other_labels_or_tokens_is_refused(outputs, small, texts, tmp_path) -> None:
    other = prepare_texts(tmp_path / "other", ("no", "yes"))
    with pytest.raises(TightropeError, match=r"it has the labels bad, good, the data .* no, yes"):
        train(tmp_path / "a", small, other, RECIPE, teacher=outputs, distill=DISTILL)
    shorter = {**ONCE, "sequence": 4}
    with pytest.raises(TightropeError, match=r"other tokens than its teacher large.*hidden to 0"):
        train(tmp_path / "b", small, texts, shorter, teacher=outputs, distill=DISTILL)
    alone = {**DISTILL, "hidden": 0}
    student = train(tmp_path / "c", small, texts, shorter, teacher=outputs, distill=alone)
    assert read_manifest(student, CheckpointManifest)["training"] is not None


def test_the_loss_is_that_of_its_definition_and_none_where_student_and_teacher_agree() -> None:
    draw = torch.Generator().manual_seed(0)
    states, found = torch.randn(3, 4, 8, generator=draw), torch.randn(3, 2, generator=draw)
    real = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]]).bool()
    targets = {"labels": torch.tensor([0, 1, -100]), "teacher_logits": found}
    targets["teacher_states"] = torch.where(real[..., None], states, 0).half()
    targets["teacher_tokens"] = real
    outputs = SimpleNamespace(logits=found, hidden_states=[states])
    loss = DistillationLoss(DistillationWeights(2.0, 0.0, 1.0), (8, 8))
    assert loss(outputs, targets).item() == pytest.approx(0, abs=1e-5)
    # twice the teacher's states: the distance of each token is one
    outputs.hidden_states = [2 * states]
    assert loss(outputs, targets).item() == pytest.approx(1, abs=1e-2)
    # the divergence
    ours, theirs = torch.tensor([[1.0, 2.0], [0.0, 3.0]]), torch.tensor([[2.0, 0.0], [1.0, 1.0]])
    p, q = (torch.softmax(one / 2, -1) for one in (theirs, ours))
    expected = 4 * (p * (p / q).log()).sum(-1).mean()
    loss = DistillationLoss(DistillationWeights(2.0, 0.0, 0.0), None)
    targets = {"labels": torch.tensor([0, 1]), "teacher_logits": theirs}
    divergence = loss(SimpleNamespace(logits=ours), targets)
    assert divergence.item() == pytest.approx(expected.item(), rel=1e-5)

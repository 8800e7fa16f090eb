"""Every engine and precision of the cpu against PyTorch fp32, on real texts of several shapes."""

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.engine_table import ENGINES
from tightrope.engines.load import load_engine
from tightrope.errors import ArtifactError, WorkFailed
from tightrope.inputs.arrays import Arrays, stack
from tightrope.inputs.texts import filled_batch
from tightrope.jobs.child import supervised
from tightrope.machine.host import describe_host
from tightrope.machine.lacks import missing_instructions
from tightrope.model.module import load_module
from tightrope.variants import Variant
from tiny_model import (
    LIMITS,
    LONGEST,
    TinyModel,
    evaluation_rows,
    name_variant,
    skip_where_emulated,
)
from transformers import BertForSequenceClassification  # noqa: F401  children inherit the import

pytestmark = pytest.mark.usefixtures("compiled_once")
Build = Callable[[Variant], Path]
# The norm of the difference of a batch's logits over the norm of its logits, in a batch of texts.
TOLERANCES = {
    ("pytorch", "fp32"): 1e-5,
    ("pytorch", "bf16"): 0.01,
    ("pytorch", "int8-dynamic"): 0.05,
    ("torchscript", "fp32"): 1e-5,
    ("torchscript", "bf16"): 0.01,
    ("compile", "bf16"): 0.01,
    ("inductor", "fp32"): 1e-4,
    ("inductor", "bf16"): 0.01,
    ("inductor", "int8"): 0.05,
    ("onnxruntime", "fp32"): 1e-4,
    ("onnxruntime", "fp16"): 0.01,
    ("onnxruntime", "int8"): 0.05,
    ("onnxruntime", "int8-auto"): 0.05,
    ("onnxruntime", "int8-dynamic"): 0.05,
    ("openvino", "fp32"): 1e-4,
    ("openvino", "bf16"): 0.01,
    ("openvino", "int8"): 0.05,
    ("openvino", "int8-bf16"): 0.1,  # with AMX one text of eighty is sensitive: 0.06 of its batch
    ("tvm", "fp32"): 1e-4,
}
# The same in a batch that is like none of the calibration samples, below fp32: unrelated logits
# give 1.4.
STRANGE = 0.6


class Answers(NamedTuple):
    """What an engine gave for the batches, and for each of them again."""

    first: list[np.ndarray]
    again: list[np.ndarray]
    held: bool  # outputs of a call stayed as they were after later calls
    untouched: bool  # and so did the inputs


def answer(path: Path, batches: list[Arrays]) -> Answers:
    """Run in a child, which alone starts the runtime's threads."""
    run, _ = load_engine(path, threads=2)
    given = [{name: array.copy() for name, array in batch.items()} for batch in batches]
    first = [run(batch) for batch in batches]
    copies = [logits.copy() for logits in first]
    again = [run(batch) for batch in batches]
    held = all(np.array_equal(one, other) for one, other in zip(first, copies, strict=True))
    untouched = all(
        np.array_equal(batch[name], array) and batch[name].dtype == array.dtype
        for batch, copy in zip(batches, given, strict=True)
        for name, array in copy.items()
    )
    return Answers(first, again, held, untouched)


def reference(folder: Path, batches: list[Arrays]) -> list[np.ndarray]:
    """Logits of the checkpoint in transformers itself, attention in its plainest form."""
    import torch

    torch.set_num_threads(1)
    module = load_module(folder, torch.float32, attention="eager")
    with torch.inference_mode():
        return [
            module(
                **{name: torch.from_numpy(array) for name, array in batch.items()}
            ).logits.numpy()
            for batch in batches
        ]


@pytest.fixture(scope="session")
def batches(tiny: TinyModel) -> list[Arrays]:
    """Texts alone, padded, in odd sizes and of the longest sequence; all of them; strange ones.

    The strange ones, at the end, are one token alone and texts of all labels joined to one.
    """
    rows = sorted(evaluation_rows(tiny), key=lambda row: len(row["input_ids"]))
    short, long = rows[0], rows[-1]
    assert len(long["input_ids"]) == LONGEST
    return [
        stack([short]),
        stack([long]),
        stack([short], sequence=17),
        stack([rows[20]]),
        stack([rows[5], rows[40], rows[60]]),
        stack([long, short, rows[33], rows[50], rows[1], rows[70], rows[12]]),
        stack(rows[40:45], sequence=LONGEST),
        stack([short]),
        *(stack(rows[start : start + 13]) for start in range(0, len(rows), 13)),
        {name: array[None, :1] for name, array in short.items()},
        filled_batch(rows, batch=16, sequence=LONGEST),
    ]


@pytest.fixture(scope="session")
def expected(tiny: TinyModel, batches: list[Arrays]) -> list[np.ndarray]:
    return supervised(reference, tiny.checkpoint.parent, batches, limits=LIMITS)


@pytest.fixture(scope="session")
def answers(built: Build, batches: list[Arrays]) -> Callable[[Variant], Answers]:
    """From a variant to its answers, each asked once."""
    known: dict[Variant, Answers] = {}

    def ask(variant: Variant) -> Answers:
        if variant not in known:
            engine = json.loads(built(variant).read_text())
            skip_where_emulated(variant, engine)
            known[variant] = supervised(answer, built(variant), batches, limits=LIMITS)
        return known[variant]

    return ask


# ONNX Runtime's CPU provider multiplies matrices in fp16 on ARM only
FP16_MISSING = platform.machine() == "x86_64"
# torch.compile takes a minute: in fp32 it is compared with PyTorch by test_image_engines, and with
# the program of docs/using-an-engine.md
ELSEWHERE = ("compile", "fp32")
EVERY = [
    pytest.param(name_variant(engine, precision), id=f"{engine}-{precision}")
    for engine, facts in ENGINES.items()
    for precision in facts.precisions.get("cpu", ())
    if not (engine == "onnxruntime" and precision == "fp16" and FP16_MISSING)
    if (engine, precision) != ELSEWHERE
]
# what keeps a program of its own; torch.compile makes it anew in half a minute
PACKAGES = [one for one in EVERY if one.values[0].engine != "compile"]
every_variant = pytest.mark.parametrize("variant", EVERY)
every_package = pytest.mark.parametrize("variant", PACKAGES)


def test_every_engine_and_precision_of_the_cpu_has_a_tolerance() -> None:
    known = {(one.values[0].engine, one.values[0].precision) for one in EVERY}
    assert set(TOLERANCES) == known | {("onnxruntime", "fp16")}


@pytest.mark.skipif(not FP16_MISSING, reason="this CPU's provider may have fp16: judged as others")
def test_a_session_that_runs_fp16_in_fp32_is_failed_for_that(built: Build) -> None:
    engine = json.loads(built(name_variant("onnxruntime", "fp16")).read_text())
    assert engine["status"] == "failed"
    assert engine["reason"] == "ran in fp32: no matrix product ran in fp16"


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))


@every_variant
def test_logits_are_those_of_pytorch_fp32(
    variant: Variant, answers, expected: list[np.ndarray]
) -> None:
    tolerance = TOLERANCES[variant.engine, variant.precision]
    strange = tolerance if variant.precision == "fp32" else STRANGE
    allowed = [tolerance] * (len(expected) - 2) + [strange] * 2
    for ours, theirs, most in zip(answers(variant).first, expected, allowed, strict=True):
        assert difference(ours, theirs) <= most, theirs.shape


@every_variant
def test_predictions_are_those_of_pytorch_fp32(
    variant: Variant, answers, tiny: TinyModel, expected: list[np.ndarray]
) -> None:
    ours = np.concatenate(answers(variant).first[8:-2]).argmax(1)
    theirs = np.concatenate(expected[8:-2]).argmax(1)
    assert len(ours) == 80
    assert set(theirs) == {0, 1, 2}
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("variant", [one for one in EVERY if one.values[0].precision != "fp32"])
def test_a_lower_precision_is_really_lower(
    variant: Variant, answers, expected: list[np.ndarray]
) -> None:
    pairs = zip(answers(variant).first, expected, strict=True)
    assert max(difference(ours, theirs) for ours, theirs in pairs) > 2e-4


@every_variant
def test_outputs_are_float32_of_batch_and_classes(
    variant: Variant, answers, batches: list[Arrays]
) -> None:
    for logits, batch in zip(answers(variant).first, batches, strict=True):
        assert (logits.dtype, logits.shape) == (np.float32, (len(batch["input_ids"]), 3))
        assert np.isfinite(logits).all()


@every_variant
def test_a_repeated_call_gives_the_same_bits(variant: Variant, answers) -> None:
    for one, other in zip(answers(variant).first, answers(variant).again, strict=True):
        np.testing.assert_array_equal(one, other)


@every_variant
def test_inputs_and_former_outputs_are_left_alone(variant: Variant, answers) -> None:
    assert answers(variant).untouched
    assert answers(variant).held


@every_variant
def test_the_manifest_says_what_was_built_and_what_runs(
    variant: Variant, answers, built: Build, tiny: TinyModel
) -> None:
    answers(variant)  # skips where this CPU lacks the precision
    engine = read_manifest(built(variant), EngineManifest)
    assert (engine["status"], engine["variant"]) == ("ok", str(variant))
    assert engine["precision"] == variant.precision
    wanted = variant.precision.partition("-")[0]
    counts = engine["executed"]
    assert sum(count.get(wanted, 0) for count in counts.values()) >= 14
    assert all(isinstance(number, int) for count in counts.values() for number in count.values())
    assert engine["format"]
    folder = built(variant).parent
    int8 = folder.with_name(f"{folder.name}-quantized") / "engine.json"  # of `build_variant`
    candidates = {path.name: path for path in (*tiny, tiny.split("calibration"), int8)}
    own = variant.calibration and not (variant.scheme or variant.quantized_as)
    assert len(engine["sources"]) == (4 if own else 1)
    assert engine["sources"] == {name: sha256(candidates[name]) for name in engine["sources"]}
    assert set(engine["libraries"]) == set(ENGINES[variant.engine].libraries)
    assert all(engine["libraries"].values())
    assert 0 < engine["build_s"] < 120
    assert 3e7 < engine["build_peak_rss_bytes"] < 8e9
    assert all(file["size_bytes"] > 0 for file in engine["files"].values())
    assert engine["files"]


@every_package
def test_a_moved_folder_gives_the_same_answers(
    variant: Variant, answers, built: Build, batches: list[Arrays], tmp_path: Path
) -> None:
    before = answers(variant).first[:6]
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for file in built(variant).parent.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    found = supervised(answer, moved / "engine.json", batches[:6], limits=LIMITS).first
    for one, other in zip(found, before, strict=True):
        np.testing.assert_array_equal(one, other)


@every_variant
@pytest.mark.parametrize("harm", ["truncated", "changed", "missing"])
def test_a_harmed_engine_is_refused_by_the_name_of_its_file(
    variant: Variant, answers, built: Build, tmp_path: Path, harm: str
) -> None:
    answers(variant)
    folder = tmp_path / "engine"
    folder.mkdir()
    for file in built(variant).parent.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    name = max(read_manifest(built(variant), EngineManifest)["files"])
    content = bytearray((folder / name).read_bytes())
    if harm == "truncated":
        (folder / name).write_bytes(content[:-1])
    elif harm == "changed":
        content[len(content) // 2] ^= 1
        (folder / name).write_bytes(content)
    else:
        (folder / name).unlink()
    with pytest.raises(ArtifactError, match=rf"{name}: "):
        load_engine(folder / "engine.json", threads=1)


def answer_in_turn(paths: list[Path], batches: list[Arrays]) -> list[list[np.ndarray]]:
    """Run in a child: all engines loaded, then asked one after the other for each batch."""
    runs = [load_engine(path, threads=1)[0] for path in paths]
    return [[run(batch) for run in runs] for batch in batches]


def test_all_engines_live_in_one_process_at_the_same_time(
    answers, built: Build, batches: list[Arrays]
) -> None:
    variants = [one.values[0] for one in EVERY if one.values[0].precision != "bf16"]
    paths = [built(variant) for variant in variants]
    found = supervised(answer_in_turn, paths, batches[:8], limits=LIMITS)
    for index, in_turn in enumerate(found):
        for variant, together in zip(variants, in_turn, strict=True):
            alone = answers(variant).first[index]
            # another number of threads may add up in another order
            np.testing.assert_allclose(together, alone, atol=2e-2 * np.abs(alone).max())


def two_of_a_kind(path: Path, batches: list[Arrays]) -> bool:
    """Run in a child: whether two copies of one engine, asked in turn, agree."""
    one, other = (load_engine(path, threads=1)[0] for _ in range(2))
    outputs = [(one(batch), other(batch)) for batch in batches]
    return all(np.array_equal(*pair) for pair in outputs)


@every_package
def test_two_copies_of_one_engine_do_not_disturb_each_other(
    variant: Variant, answers, built: Build, batches: list[Arrays]
) -> None:
    answers(variant)
    assert supervised(two_of_a_kind, built(variant), batches[:6], limits=LIMITS)


def test_a_request_beyond_the_range_is_an_error_that_names_it(built: Build, answers) -> None:
    ids = np.zeros((1, LONGEST + 1), dtype=np.int64)
    batch: Any = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    for one in EVERY:
        variant = one.values[0]
        if variant.engine == "compile":  # a minute for what loading.py does for every engine
            continue
        if read_manifest(built(variant), EngineManifest)["status"] == "failed":
            assert missing_instructions(variant, describe_host())
        else:
            with pytest.raises(WorkFailed, match=rf"{LONGEST + 1}.* 1 to {LONGEST}") as caught:
                supervised(answer, built(variant), [batch], limits=LIMITS)
            assert not caught.value.transient

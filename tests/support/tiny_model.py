"""A tiny text classifier, trained until its margins are clear, and every file made from it."""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from checkpoints import make_checkpoint
from splits import prepare_splits, split_of
from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest import Artifacts
from tightrope.artifacts.provenance import library_versions
from tightrope.engine_table import ENGINES
from tightrope.engines.build import build_engine
from tightrope.engines.load import load_engine
from tightrope.inputs.arrays import Arrays
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.jobs.child import Limits, supervised
from tightrope.jobs.execution import Execution
from tightrope.machine.host import describe_host, saturates
from tightrope.machine.lacks import missing_instructions
from tightrope.variants import CALIBRATED, GIVEN, Variant

ARCHITECTURE = (
    "scratch:bert?hidden_size=64&num_hidden_layers=2&num_attention_heads=2&intermediate_size=128"
    "&vocab_size=400&max_position_embeddings=64"
)
RECIPE = {"epochs": 4, "batch": 16, "learning_rate": 3e-3, "sequence": 64, "amp": "off"}
LONGEST = 64
SAMPLES = 24
BUCKETS = {"batch": [1, 16], "sequence": [32, LONGEST]}
# what the rules pass on from the configuration
OPTIONS: dict[str, dict[str, Any]] = {
    "onnxruntime": {
        **{"fusions": False, "attention_operator": False, "optimization": "all"},
        **{"spinning": True, "arena": True},
    },
    "openvino": {"route": "onnx", "blobs": False, "static_programs": None, "buckets": BUCKETS},
    # two: TVM compiles four seconds for each
    "tvm": {"buckets": {**BUCKETS, "sequence": [LONGEST]}},
}
# a test of TVM, 13 s alone, took 57 s beside the other tests
LIMITS = Limits(memory_bytes=8e9, seconds=600)
EXECUTION = Execution(threads=1, limits=LIMITS, libraries={})
WORDS = ["film", "book", "song", "play", "story", "actor", "scene", "end", "joke", "plot"]
WORDS += ["music", "night", "light", "voice", "camera", "town", "river", "house", "train"]
MOODS = {
    "bad": ["awful", "dull", "broken"],
    "good": ["fine", "bright", "lovely"],
    "odd": ["weird", "crooked", "purple"],
}


class TinyModel(NamedTuple):
    """Paths of the files of one model; caches of SAMPLES samples, quantized ones by minmax."""

    data: Path
    checkpoint: Path
    onnx: Path
    simplified: Path
    minmax: Path
    nncf: Path
    u8s8: Path
    s8s8: Path
    e4m3: Path

    def split(self, name: str) -> Path:
        """Return the manifest of that split of the data."""
        return split_of(self.data, name)

    def samples(self, cache: Path) -> dict[str, str]:
        """Return what an engine that quantizes itself reads, with that cache."""
        paths = {"onnx": self.simplified, "calibration": cache, "data": self.split("calibration")}
        return {name: str(path) for name, path in {**paths, "checkpoint": self.checkpoint}.items()}


def make_tiny_model(folder: Path) -> TinyModel:
    """Run the chain up to the quantized ONNX, in a child.

    The process of the tests itself starts no OpenMP or TBB threads, for forked children of it
    could not use them.
    """
    model = model_files(folder)
    supervised(run_chain, folder, model, limits=LIMITS)
    return model


def model_files(folder: Path) -> TinyModel:
    """Where the files of a model lie in `folder`."""
    return TinyModel(
        data=folder / "data" / "data.json",
        checkpoint=folder / "checkpoint" / "checkpoint.json",
        onnx=folder / "model.onnx",
        simplified=folder / "model.simplified.onnx",
        minmax=folder / "calibration" / f"minmax-{SAMPLES}.json",
        nncf=folder / "calibration" / f"nncf-{SAMPLES}.json",
        u8s8=folder / "quantized" / f"u8s8-minmax-{SAMPLES}.onnx",
        s8s8=folder / "quantized" / f"s8s8-minmax-{SAMPLES}.onnx",
        e4m3=folder / "quantized" / f"e4m3-minmax-{SAMPLES}.onnx",
    )


def run_chain(folder: Path, model: TinyModel) -> None:
    """What make_tiny_model runs in the child; a run of other tests never imports PyTorch."""
    make_text_checkpoint(folder, model)
    make_onnx_files(model)


def make_text_checkpoint(folder: Path, model: TinyModel) -> None:
    """Write the data and train the checkpoint."""
    write_data(folder / "moods.csv", model.data)
    make_checkpoint(folder, ARCHITECTURE, model.split("train"), recipe=RECIPE)


def make_onnx_files(
    model: TinyModel,
    longest: int = LONGEST,
    methods: tuple[str, ...] = ("minmax", "nncf"),
    schemes: tuple[str, ...] = ("u8s8", "s8s8", "e4m3"),
) -> None:
    """Write what is made from the checkpoint: ONNX files, calibration caches, quantized files."""
    from tightrope.int8.calibrate import calibrate
    from tightrope.int8.quantize import quantize_onnx
    from tightrope.onnx.export import export_onnx
    from tightrope.onnx.simplify import simplify_onnx

    facts: dict[str, Any] = {"max_sequence": longest, "threads": 1}
    facts |= {"samples": SAMPLES, "percentile": None, "libraries": {}}
    export_onnx(model.checkpoint, model.onnx, threads=1)
    simplify_onnx(model.onnx, model.checkpoint, model.split("timing"), model.simplified, threads=1)
    inputs = (model.simplified, model.split("calibration"), model.checkpoint)
    for method in methods:
        calibrate(*inputs, getattr(model, method), method=method, **facts)
    for scheme in schemes:
        quantize_onnx(model.simplified, model.minmax, getattr(model, scheme), scheme=scheme)


def write_data(table: Path, manifest: Path) -> None:
    """Texts of 3 to 62 words among which some words tell the label."""
    draw = np.random.default_rng(0)
    lines = ["text,label"]
    for number in range(540):
        label = list(MOODS)[number % 3]
        words = list(draw.choice(WORDS, size=3 + number % 60))
        for place in draw.choice(len(words), size=1 + len(words) // 6, replace=False):
            words[place] = str(draw.choice(MOODS[label]))
        lines.append(f"{' '.join(words)},{label}")
    table.parent.mkdir(parents=True, exist_ok=True)
    table.write_text("\n".join(lines))
    columns, sizes = {"text": "text", "label": "label"}, {"train": 400, "evaluation": 80}
    keys: dict[str, Any] = {"columns": columns, "splits": sizes, "pool": 40, "seed": 0}
    prepare_splits(manifest, source=f"files:{table}", **keys)


def evaluation_rows(model: TinyModel) -> list[Arrays]:
    """The encoded evaluation texts in the order of the split."""
    examples = read_split(split_of(model.data, "evaluation"))
    return load_encoder(model.checkpoint, max_sequence=LONGEST)(examples)


def name_variant(engine: str, precision: str) -> Variant:
    """The variant on the cpu; calibrated precisions with the engine's first method."""
    if precision not in CALIBRATED:
        return Variant("cpu", engine, precision)
    return Variant("cpu", engine, precision, f"{ENGINES[engine].methods[0]}-{SAMPLES}")


def skip_where_emulated(variant: Variant, engine: dict[str, Any]) -> None:
    """Skip the test of an engine that failed because this CPU lacks the instructions for it."""
    missing = missing_instructions(variant, describe_host())
    if missing and engine["status"] == "failed":
        pytest.skip(f"{missing}, and was: {engine['reason']}")


def artifacts_of(
    model: TinyModel, engine: Path, split: str = "evaluation", *, name: str = "tiny"
) -> Artifacts:
    """What a measurement of that engine of the model, which has that name, reads."""
    variant = read_json(engine)["variant"]
    return Artifacts(name, variant, engine, model.checkpoint, model.split(split))


def executed_with(settings: dict[str, Any]) -> Execution:
    """EXECUTION with those of its fields that are among `settings`, from which they are taken."""
    names = EXECUTION.__dataclass_fields__.keys() & settings.keys()
    return replace(EXECUTION, **{name: settings.pop(name) for name in names})


def build_variant(model: TinyModel, variant: Variant, target: Path, **settings: Any) -> Path:
    """Build it beside `target` as its rule does.

    `settings` replace those of build_engine, or fields of its execution.
    """
    source, samples = model.simplified, None
    if ENGINES[variant.engine].source == "checkpoint":
        source = model.checkpoint
    if variant.quantized_as is not None and "source" not in settings:
        source = target.parent.with_name(f"{target.parent.name}-quantized") / target.name
        build_variant(model, variant.quantized_as, source, **settings)
    elif variant.scheme is not None:
        source = getattr(model, variant.scheme)
    elif variant.precision == GIVEN:
        source = model.s8s8
    elif variant.calibration is not None:
        samples = model.samples(getattr(model, variant.calibration.partition("-")[0]))
    facts = {
        "libraries": library_versions(*ENGINES[variant.engine].libraries),
        "options": OPTIONS.get(variant.engine, {}),
        "samples": samples,
        "source": source,
        **settings,
    }
    if variant.precision in ENGINES[variant.engine].reducible:
        facts["options"] = {"reduce_range": saturates(describe_host()), **facts["options"]}
    build_engine(str(variant), target=target, execution=executed_with(facts), **facts)
    return target


def answers_of(engine: Path, batches: list[Arrays], *, threads: int = 1) -> list[np.ndarray]:
    """Logits of each batch, from a child, which alone starts the runtime's threads."""

    def answer() -> list[np.ndarray]:
        run, _ = load_engine(engine, threads=threads)
        return [run(batch) for batch in batches]

    return supervised(answer, limits=LIMITS)


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The norm of the difference of a batch's logits over the norm of its logits."""
    return float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs))

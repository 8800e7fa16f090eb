"""Audit a quantized engine for collapsed predictions before its latency is measured."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.descent import require_engine_of
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import classes_of, open_manifest, read_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.paths import Artifacts
from tightrope.engines.load import load_engine
from tightrope.errors import WorkFailed
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.quantization_noise import quantization_noise
from tightrope.jobs.child import failure, supervised
from tightrope.jobs.execution import Execution
from tightrope.jobs.progress import ProgressBar
from tightrope.measure.answers import answer_chunk, largest_batch
from tightrope.onnx.file import load_onnx, require_onnx_of
from tightrope.onnx.session import open_model
from tightrope.statistics import share

SCHEMA = 1
SAMPLES = 128
# share of a single class from which predictions are collapsed, unless float also reaches it
CONSTANT = 0.98
# agreement with float from which an engine passes, even if float itself is close to a threshold
MOSTLY = 0.9
Facts = dict[str, Any]


def audit_variant(
    artifacts: Artifacts,
    quantized: Path | str | None,
    target: Path | str,
    *,
    variant: str,
    max_sequence: int,
    execution: Execution,
) -> None:
    """Write whether the predictions of the engine have collapsed, and which tensor is the cause.

    The reference is the ONNX file in float, on the first SAMPLES examples of the data. `status` is
    `ok`, `collapsed`, or `failed` where the engine was not built or cannot run. The evidence is in
    `answers` and in `tensors`, see `quantization_noise`; `tensors` is empty for an engine that
    quantizes itself. A transient failure raises TightropeError unless this is the last attempt;
    ArtifactError where engine, ONNX file and checkpoint are not of one model.
    """
    built = open_manifest(artifacts.engine, EngineManifest)
    require_engine_of(artifacts.engine, artifacts.checkpoint, variant)
    record: Facts = {
        "schema": SCHEMA,
        "variant": variant,
        "engine_sha256": sha256(artifacts.engine),
    }
    record |= {"status": "ok", "reason": None, "answers": None, "tensors": []}
    if built["status"] != "ok":
        record |= {"status": "failed", "reason": f"not built: {built['reason']}"}
    else:
        settings = {"max_sequence": max_sequence, "threads": execution.threads}
        work = partial(audited, artifacts, quantized, **settings)
        try:
            record |= supervised(work, limits=execution.limits)
        except WorkFailed as error:
            record |= failure(error, variant, execution.limits)
    write_artifact(target, record)


def audited(
    artifacts: Artifacts, quantized: Path | str | None, *, max_sequence: int, threads: int
) -> Facts:
    """Return, in the child, the fields of the record that depend on the predictions."""
    if artifacts.onnx is None:
        raise ValueError("an audit compares with the ONNX file in float, and none is given")
    for path in (artifacts.onnx, quantized):
        if path is not None:
            require_onnx_of(path, artifacts.checkpoint)
    examples = read_split(artifacts.data)[:SAMPLES]
    rows = load_encoder(artifacts.checkpoint, max_sequence=max_sequence)(examples)
    classes = classes_of(artifacts.checkpoint)
    session = open_model(load_onnx(artifacts.onnx), threads=threads)
    with ProgressBar("predicting", 2 * len(rows)) as bar:
        float_ = answer_chunk(lambda given: session.run(None, given)[0], rows, 1, classes, bar.add)
        run, _ = load_engine(artifacts.engine, threads=threads)
        size = largest_batch(read_manifest(artifacts.engine, EngineManifest)["options"])
        own = answer_chunk(run, rows, size, classes, bar.add)
    expected, found = ([one.prediction for one in answers] for answers in (float_, own))
    labels = [one["label"] for one in examples] if "label" in examples[0] else expected
    facts = answers_of(found, expected, labels)
    tensors = quantization_noise(quantized, rows, threads=threads) if quantized else []
    reason = collapse(facts)
    if reason is not None:
        reason = f"collapsed: {reason}; {fault(tensors)}"
    status = "ok" if reason is None else "collapsed"
    return {"status": status, "reason": reason, "answers": facts, "tensors": tensors}


def answers_of(found: list[int], expected: list[int], labels: list[int]) -> Facts:
    """Return accuracies, agreement, and the shares of the most common prediction and label."""
    count = len(labels)
    own, float_ = (
        share(sum(one == label for one, label in zip(answers, labels, strict=True)), count)
        for answers in (found, expected)
    )
    return {
        "samples": count,
        "accuracy": own._asdict(),
        "float_accuracy": float_._asdict(),
        "agreement": sum(a == b for a, b in zip(found, expected, strict=True)) / count,
        "commonest": commonest(found),
        "float_commonest": commonest(expected),
        "chance": commonest(labels),
    }


def commonest(values: list[int]) -> float:
    """Return the share of the most common value."""
    return max(Counter(values).values()) / len(values)


def collapse(facts: Facts) -> str | None:
    """Return why the predictions have collapsed, None where they have not.

    Low accuracy counts only where the model in float is better than chance.
    """
    if facts["agreement"] >= MOSTLY:
        return None
    if facts["commonest"] >= CONSTANT > facts["float_commonest"]:
        return f"one answer to {100 * facts['commonest']:.0f} % of {facts['samples']} examples"
    chance = facts["chance"]
    if facts["float_accuracy"]["low"] > chance >= facts["accuracy"]["low"]:
        own, before = (100 * facts[name]["value"] for name in ("accuracy", "float_accuracy"))
        return f"accuracy {own:.0f} % of {facts['samples']} examples, {before:.0f} % in float, " + (
            f"{100 * chance:.0f} % by chance"
        )
    return None


def fault(tensors: list[Facts]) -> str:
    """Describe the operator and tensor at fault: the noisiest with a finding, else the noisiest."""
    if not tensors:
        return "this engine quantizes itself, so the operator at fault is not known"
    worst = next((one for one in tensors if one["findings"]), tensors[0])
    words = (
        "; ".join(worst["findings"]) or f"{worst['sqnr_db']:.0f} dB above its quantization noise"
    )
    return f"at fault: operator {worst['operator']}, tensor {worst['tensor']}: {words}"

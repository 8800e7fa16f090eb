"""A model repository of Triton Inference Server, from an engine and its measurements.

docs/bundle.md says which backends have served such a repository, and which never.
"""

import re
from collections.abc import Sequence

from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.bundle.text_proto import Enum, Message, parameters, text_proto
from tightrope.bundle.triton_backends import Backend, backend_of, optimization, require_precision
from tightrope.bundle.triton_readme import readme
from tightrope.bundle.triton_settings import Settings, own, settings_of
from tightrope.errors import TightropeError, printable
from tightrope.summary.result_types import Result
from tightrope.summary.throughput import Throughput
from tightrope.summary.traffic import Traffic
from tightrope.variants import Variant

README = "README.md"
LABELS = "labels.txt"
# a folder, a part of an address, and no option of a command
NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
TYPES = {"int64": "TYPE_INT64", "float32": "TYPE_FP32"}


def triton_files(
    model: str,
    engine: EngineManifest,
    labels: list[str],
    result: Result,
    throughput: list[Throughput],
    traffic: list[Traffic],
    *,
    isa: Sequence[str] = (),
) -> dict[str, str]:
    """Return the text files of the repository by their path: configuration, labels and README.md.

    `labels` are in the order of the logits, `throughput` and `traffic` those of summary.json, of
    which entries of other variants are ignored; `isa` is that of the measured host, whose bf16 an
    OpenVINO engine of another precision is refused for. Raises TightropeError in one line for a
    name that is no folder, an engine that failed or that no backend of Triton serves as it was
    measured, a result of another engine or without a measurement, and without labels.
    """
    require_name(model)
    variant, backend = backend_of(model, engine)
    require_precision(model, variant, isa)
    require_result(model, engine, labels, result)
    settings = settings_of(engine["options"], result, throughput, traffic)
    config = configuration(model, variant, backend, engine, labels, result, settings)
    return {
        f"{model}/config.pbtxt": text_proto(config),
        f"{model}/{LABELS}": "".join(f"{printable(label)}\n" for label in labels),
        README: readme(model, variant, backend, engine, settings, lengths(engine, result, traffic)),
    }


def engine_files(model: str, engine: EngineManifest) -> dict[str, str]:
    """Return the names of the engine's files by their path in the repository.

    Raises TightropeError as `triton_files` does.
    """
    require_name(model)
    _, backend = backend_of(model, engine)
    return {f"{model}/1/{name}": name for name in backend.files}


def require_name(model: str) -> None:
    """Raise TightropeError where a name is no name of a folder beside README.md."""
    if not NAME.fullmatch(model) or model.casefold() == README.casefold():
        raise TightropeError(
            f"{model}: no name for a folder and an address of Triton; name the model with up to "
            "100 letters, digits, dots, underscores and hyphens, a letter or digit first"
        )


def require_result(model: str, engine: EngineManifest, labels: list[str], result: Result) -> None:
    """Raise TightropeError unless the result is of this engine, and there are labels."""
    name = f"{model} {engine['variant']}"
    if (result["model"], result["variant"]) != (model, engine["variant"]):
        other = f"{result['model']} {result['variant']}"
        raise TightropeError(f"{name}: the result is of {other}; take that of the engine")
    if result["status"] != "ok":
        reason = result["reason"] or "it was not measured"
        raise TightropeError(f"{name}: {reason}; bundle a variant that was measured")
    if not labels:
        raise TightropeError(f"{name}: the checkpoint has no labels; prepare it again")


def configuration(
    model: str,
    variant: Variant,
    backend: Backend,
    engine: EngineManifest,
    labels: list[str],
    result: Result,
    settings: Settings,
) -> Message:
    """Return config.pbtxt as a message `ModelConfig`."""
    first = [] if backend.batches else [-1]
    half = variant.engine == "torchscript" and variant.precision == "fp16"
    output = {
        "name": "logits",
        "data_type": Enum("TYPE_FP16" if half else "TYPE_FP32"),
        "dims": [*first, len(labels)],
        "label_filename": LABELS,
    }
    platform = {"platform": backend.platform} if backend.platform else {}
    optimized = optimization(variant, engine, result, settings)
    return {
        "name": model,
        "backend": backend.name,
        **platform,
        "max_batch_size": settings.largest if backend.batches else 0,
        "input": [input_of(name, dtype, axes, first) for name, dtype, axes in engine["inputs"]],
        "output": output,
        "instance_group": instances(variant, engine, settings),
        **({"dynamic_batching": batching(settings)} if backend.batches else {}),
        **({"optimization": optimized} if optimized else {}),
        "parameters": parameters(backend.parameters(variant, engine["options"], settings)),
    }


def input_of(name: str, dtype: str, axes: Sequence[int | str], first: list[int]) -> Message:
    """Return an input whose free axes are -1; the batch is among its axes only as `first`."""
    dims = [*first, *(-1 if isinstance(axis, str) else axis for axis in axes[1:])]
    return {"name": name, "data_type": Enum(TYPES[dtype]), "dims": dims}


def instances(variant: Variant, engine: EngineManifest, settings: Settings) -> Message:
    """Return the instance group; of a TensorRT plan each instance has all its profiles."""
    kind = Enum("KIND_GPU" if variant.device == "cuda" else "KIND_CPU")
    group = {"count": settings.instances, "kind": kind}
    if variant.engine != "tensorrt":
        return group
    return {**group, "profile": [str(number) for number, _ in enumerate(profiles(engine))]}


def profiles(engine: EngineManifest) -> Sequence[object]:
    """Return the optimization profiles of an engine, in the order of its plan."""
    return engine["options"]["profiles"]


def batching(settings: Settings) -> Message:
    """Return how Triton makes batches of requests."""
    return {
        "preferred_batch_size": [settings.preferred],
        "max_queue_delay_microseconds": settings.delay_us,
    }


def lengths(engine: EngineManifest, result: Result, traffic: list[Traffic]) -> list[int]:
    """Return the lengths in tokens to pad texts to: measured ones; empty for images.

    The edges of the length buckets under traffic, else the sequences of the engine's buckets, else
    those whose latency was measured.
    """
    load = own(traffic, result)
    edges = load["edges"] if load else []
    buckets = (engine["options"].get("buckets") or {}).get("sequence", [])
    measured = {row["sequence"] for row in result["latency"] if "sequence" in row}
    return sorted(edges or buckets or measured)

"""Input files of rules that depend on the variant, and quantization schemes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.artifacts.provenance import library_versions
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.engine_table import ENGINES
from tightrope.machine.host import saturates
from tightrope.plan.hosts import known_machine
from tightrope.plan.planned_on import planning_host
from tightrope.plan.shapes import is_of_images
from tightrope.variants import AUTO, GIVEN, QUANTIZED, Variant, parse

Document = dict[str, Any]


def data_source(config: Document, model: str) -> dict[str, Any]:
    """Return the arguments of `data_sources` for the data of a model."""
    keys = config["models"][model]
    return {"source": keys["data"], "task": keys["task"], "images": keys["images"]}


def local_data_files(config: Document, wildcards: Any) -> list[str]:
    """Return the local files that a model's data are prepared from."""
    return data_sources.local_files(**data_source(config, wildcards.model))


def local_checkpoint_files(config: Document, wildcards: Any) -> list[str]:
    """Return the local files that a model's checkpoint is prepared from."""
    return checkpoint_source.local_files(config["models"][wildcards.model]["checkpoint"])


def training_examples(config: Document, wildcards: Any) -> str:
    """Return the train split, or data.json with its labels for a checkpoint that learns nothing.

    Random weights have no tokenizer: theirs is made of the train split.
    """
    model, folder = config["models"][wildcards.model], f"artifacts/{wildcards.model}"
    learns = model["train"] or model.get("qat") or model["checkpoint"].startswith("scratch:")
    return f"{folder}/splits/train.json" if learns else f"{folder}/data/data.json"


def engine_inputs(config: Document, engine: str, wildcards: Any) -> dict[str, str]:
    """Return the inputs of the rule that builds variant `{device}-{engine}-{rest}` of a model.

    `source` is the checkpoint or the ONNX file; the quantized ONNX for a variant with a scheme; the
    file as it is for one that is quantized already; the
    engine.json of the variant whose quantized model it shares. An engine that collects its own
    statistics also gets the calibration cache, the ONNX file of that cache, the
    calibration split and the checkpoint.
    """
    variant = parse(f"{wildcards.device}-{engine}-{wildcards.rest}")
    folder = f"artifacts/{wildcards.model}"
    onnx = f"{folder}/model.simplified.onnx"
    checkpoint = f"{folder}/checkpoint/checkpoint.json"
    if variant.scheme is not None:
        return {"source": quantized_onnx(config, wildcards.model, variant)}
    if variant.quantized_as is not None:
        return {"source": engine_manifest(wildcards.model, variant.quantized_as)}
    if variant.precision == GIVEN:
        return {"source": f"{folder}/model.onnx"}
    source = {"source": checkpoint if from_checkpoint(config, engine) else onnx}
    if variant.calibration is None:
        return source
    return source | {
        "onnx": onnx,
        "calibration": f"{folder}/calibration/{variant.calibration}.json",
        "data": f"{folder}/splits/calibration.json",
        "checkpoint": checkpoint,
    }


def engine_manifest(model: str, variant: Variant) -> str:
    """Return the engine.json of a variant."""
    return f"artifacts/{model}/engines/{variant}/engine.json"


def scheme_of(config: Document, variant: Variant) -> str | None:
    """Return the scheme of the quantized ONNX of `variant`, u8s7 for u8s8 with a reduced range."""
    reduced = variant.scheme == "u8s8" and reduces_range(config, variant)
    return "u8s7" if reduced else variant.scheme


def reduces_range(config: Document, variant: Variant) -> bool:
    """Return whether u8 x s8 products must stay within 7 bits on the CPU of a variant."""
    asked = config["calibration"]["reduce_range"]
    if asked == "auto":
        machine = known_machine(config, variant, planning_host())
        return machine is not None and saturates(machine)
    return bool(asked)


def quantize_inputs(wildcards: Any) -> dict[str, str]:
    """Return the inputs of the quantization rule, for a mixed model with its float operators."""
    folder, calibration = f"artifacts/{wildcards.model}", wildcards.calibration
    method, samples, *repair = calibration.split("-")
    inputs = {
        "onnx": f"{folder}/model.simplified.onnx",
        "calibration": f"{folder}/calibration/{method}-{samples}.json",
    }
    if repair == ["auto"]:
        inputs["search"] = f"{folder}/search/{wildcards.scheme}-{method}-{samples}.json"
    return inputs


def int8_files(config: Document, model: str, variant: Variant) -> list[str]:
    """Return the files between the ONNX file and the engine of `variant`, in job order."""
    if variant.calibration is None:
        return []
    folder = f"artifacts/{model}"
    found = [f"{folder}/calibration/{variant.statistics}.json"]
    if (shared := variant.quantized_as) is not None:
        found += [quantized_onnx(config, model, shared)] if shared.scheme else []
        found += [engine_manifest(model, shared)]
    if variant.precision == AUTO:
        name = f"{scheme_of(config, variant)}-{variant.calibration}"
        found += [f"{folder}/quantized/{name}.onnx", f"{folder}/search/{name}.json"]
    return [*found, quantized_onnx(config, model, variant)] if variant.scheme else found


def cache_columns(jobs: Iterable[tuple[str, Variant]]) -> dict[str, list[str]]:
    """Return model and name of each calibration cache, as wildcard values of a path."""
    caches = {(model, name) for model, variant in jobs if (name := variant.statistics)}
    ordered = sorted(caches)
    return {"model": [model for model, _ in ordered], "cache": [name for _, name in ordered]}


def from_checkpoint(config: Document, engine: str) -> bool:
    """Return whether an engine is built from the checkpoint, not from ONNX."""
    route = config.get(engine, {}).get("route")
    return (route == "pytorch") if route else ENGINES[engine].source == "checkpoint"


def encoding_libraries(
    config: Document, names: Sequence[str], wildcards: Any
) -> dict[str, str | None]:
    """Return installed versions of `names` and of the library that encodes the model's examples."""
    encoder = "pillow" if is_of_images(config, wildcards.model) else "tokenizers"
    return library_versions(*names, encoder)


def audit_input(wildcards: Any) -> dict[str, str]:
    """Return the audit that precedes the latency measurement of a quantized variant."""
    found = audits(wildcards.model, parse(wildcards.variant))
    return {"audit": found[0]} if found else {}


def peaks_of_variant(wildcards: Any) -> str:
    """Return the file with the peaks of the device that the variant runs on."""
    return peaks_file(parse(wildcards.variant))


def peaks_file(variant: Variant) -> str:
    """Return the file with the peaks of the device of a variant."""
    return f"artifacts/machine/{variant.place}.peaks.json"


def requests_of_variant(wildcards: Any) -> str:
    """Return the file with what the requests of a model take at the place of the variant."""
    return requests_file(wildcards.model, parse(wildcards.variant))


def requests_file(model: str, variant: Variant) -> str:
    """Return the file with what the requests of a model take at the place of a variant."""
    return f"artifacts/{model}/{variant.place}.requests.json"


def counted_inputs(
    config: Document, variants: Mapping[tuple[str, str], Iterable[Variant]], wildcards: Any
) -> dict[str, str]:
    """Return the simplified ONNX of a profiled model, whose operations are counted.

    Empty where none of the planned `variants` of that model and place reads it: no profile exports
    a model.
    """
    model = wildcards.model
    own = variants.get((model, wildcards.device), ())
    if any(reads_simplified(config, one) for one in own):
        return {"onnx": f"artifacts/{model}/model.simplified.onnx"}
    return {}


def reads_simplified(config: Document, variant: Variant) -> bool:
    """Return whether the build, the calibration or the audit of `variant` reads simplified ONNX."""
    return variant.precision in QUANTIZED or not from_checkpoint(config, variant.engine)


def audits(model: str, variant: Variant) -> list[str]:
    """Return the audit of a variant, empty where it is not quantized: it cannot collapse."""
    audited = variant.precision in QUANTIZED
    return [f"artifacts/{model}/audit/{variant}.json"] if audited else []


def audited_inputs(config: Document, wildcards: Any) -> dict[str, str]:
    """Return the quantized ONNX of a variant that is built from it."""
    variant = parse(wildcards.variant)
    if variant.scheme is None:
        return {}
    return {"quantized": quantized_onnx(config, wildcards.model, variant)}


def quantized_onnx(config: Document, model: str, variant: Variant) -> str:
    """Return the quantized ONNX of `variant`, for int8-auto the one mixed by the search."""
    mixed = "-auto" if variant.precision == AUTO else ""
    name = f"{scheme_of(config, variant)}-{variant.calibration}{mixed}"
    return f"artifacts/{model}/quantized/{name}.onnx"

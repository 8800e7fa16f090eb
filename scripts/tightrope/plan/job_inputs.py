"""What each job reads: the inputs of rules that depend on the variant, and their schemes."""

from collections.abc import Sequence
from typing import Any

from tightrope.artifacts.provenance import library_versions
from tightrope.checkpoint import source as checkpoint_source
from tightrope.data import source as data_sources
from tightrope.engine_table import ENGINES
from tightrope.machine.host import describe_host, saturates
from tightrope.plan.shapes import is_of_images
from tightrope.variants import AUTO, Variant, parse

Document = dict[str, Any]
# precisions whose answers may collapse
INTEGERS = ("int8", "fp8")


def data_source(config: Document, model: str) -> dict[str, Any]:
    """Where the data of a model come from, as `data_sources` takes it."""
    keys = config["models"][model]
    return {"source": keys["data"], "task": keys["task"], "images": keys["images"]}


def local_data_files(config: Document, wildcards: Any) -> list[str]:
    """The local files that the data of a model are made from."""
    return data_sources.local_files(**data_source(config, wildcards.model))


def local_checkpoint_files(config: Document, wildcards: Any) -> list[str]:
    """The local files that the checkpoint of a model is made from."""
    return checkpoint_source.local_files(config["models"][wildcards.model]["checkpoint"])


def engine_inputs(config: Document, engine: str, wildcards: Any) -> dict[str, str]:
    """Inputs of the rule that builds variant `{device}-{engine}-{rest}` of a model.

    `source` is the checkpoint or the ONNX file, the quantized one for a variant that has a
    scheme, and the engine.json of the variant whose quantized model it shares. One that collects
    statistics of its own also gets the calibration cache, the ONNX file to which that belongs, the
    data and the checkpoint.
    """
    variant = parse(f"{wildcards.device}-{engine}-{wildcards.rest}")
    folder = f"artifacts/{wildcards.model}"
    onnx = f"{folder}/model.simplified.onnx"
    checkpoint = f"{folder}/checkpoint/checkpoint.json"
    if variant.scheme is not None:
        return {"source": quantized_onnx(config, wildcards.model, variant)}
    if variant.quantized_as is not None:
        return {"source": engine_manifest(wildcards.model, variant.quantized_as)}
    source = {"source": checkpoint if from_checkpoint(config, engine) else onnx}
    if variant.calibration is None:
        return source
    return source | {
        "onnx": onnx,
        "calibration": f"{folder}/calibration/{variant.calibration}.json",
        "data": f"{folder}/data/data.json",
        "checkpoint": checkpoint,
    }


def engine_manifest(model: str, variant: Variant) -> str:
    """The engine.json of that variant."""
    return f"artifacts/{model}/engines/{variant}/engine.json"


def scheme_of(config: Document, variant: Variant) -> str | None:
    """The scheme of the quantized ONNX of `variant`, weights within 7 bits where they must be."""
    return "u8s7" if variant.scheme == "u8s8" and reduces_range(config) else variant.scheme


def reduces_range(config: Document) -> bool:
    """Whether products of u8 and s8 keep within 7 bits on the CPU that is to run them."""
    asked = config["calibration"]["reduce_range"]
    if asked == "auto":
        return config["host"] == "auto" and saturates(describe_host())
    return bool(asked)


def quantize_inputs(wildcards: Any) -> dict[str, str]:
    """Inputs of the rule that quantizes; of a mixed model also the operators left in float."""
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
    """The files between the ONNX file and the engine of `variant`, in the order of their jobs."""
    if variant.calibration is None:
        return []
    folder = f"artifacts/{model}"
    found = [f"{folder}/calibration/{variant.statistics}.json"]
    if variant.quantized_as is not None:
        found += [engine_manifest(model, variant.quantized_as)]
    if variant.precision == AUTO:
        name = f"{scheme_of(config, variant)}-{variant.calibration}"
        kinds = ("sensitivity", "costs", "search")
        found += [f"{folder}/quantized/{name}.onnx"]
        found += [f"{folder}/{kind}/{name}.json" for kind in kinds]
    return [*found, quantized_onnx(config, model, variant)] if variant.scheme else found


def from_checkpoint(config: Document, engine: str) -> bool:
    """Whether that engine is built from the checkpoint, not from ONNX."""
    route = config.get(engine, {}).get("route")
    return (route == "pytorch") if route else ENGINES[engine].source == "checkpoint"


def encoding_libraries(
    config: Document, names: Sequence[str], wildcards: Any
) -> dict[str, str | None]:
    """Installed versions of those and of what makes a model's examples numbers."""
    encoder = "pillow" if is_of_images(config, wildcards.model) else "tokenizers"
    return library_versions(*names, encoder)


def audit_input(wildcards: Any) -> dict[str, str]:
    """The audit that comes before the latency of a variant in INT8 or FP8 is measured."""
    found = audits(wildcards.model, parse(wildcards.variant))
    return {"audit": found[0]} if found else {}


def audits(model: str, variant: Variant) -> list[str]:
    """The audit of that variant, none where its precision needs none."""
    audited = variant.precision.startswith(INTEGERS)
    return [f"artifacts/{model}/audit/{variant}.json"] if audited else []


def audited_inputs(config: Document, wildcards: Any) -> dict[str, str]:
    """The quantized ONNX of a variant that is built from one."""
    variant = parse(wildcards.variant)
    if variant.scheme is None:
        return {}
    return {"quantized": quantized_onnx(config, wildcards.model, variant)}


def quantized_onnx(config: Document, model: str, variant: Variant) -> str:
    """The quantized ONNX of `variant`, that of a search for int8-auto."""
    mixed = "-auto" if variant.precision == AUTO else ""
    name = f"{scheme_of(config, variant)}-{variant.calibration}{mixed}"
    return f"artifacts/{model}/quantized/{name}.onnx"

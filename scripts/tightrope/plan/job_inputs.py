"""Input files of rules that depend on the model or the variant, and the quantized ONNX files."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from tightrope.artifacts.provenance import library_versions
from tightrope.engine_table import ENGINES
from tightrope.machine.host import saturates
from tightrope.plan.hosts import Document, Jobs, known_machine, planning_host
from tightrope.plan.shapes import is_of_images
from tightrope.records.profile import PREFIX
from tightrope.variants import AUTO, CALIBRATION, GIVEN, QUANTIZED, SCHEMES, Variant, either, parse

EXPORTED, SIMPLIFIED, OF_INT8 = "exported", "simplified", "quantized"
# a graph is named by its stage, or by the name of a quantized ONNX file
GRAPH = rf"{EXPORTED}|{SIMPLIFIED}|(?:{either(SCHEMES)})-{CALIBRATION}(?:-auto)?"
ONNX_FILES = {EXPORTED: "model.onnx", SIMPLIFIED: "model.simplified.onnx"}
# the programs of bundles, of which every one has these
FOLDER = "tightrope/bundle/programs"
PROGRAMS = ("predict", "verify", "machine", "buckets")


def data_source(config: Document, model: str) -> dict[str, Any]:
    """Return the arguments of `data_sources` for the data of a model."""
    keys = config["models"][model]
    return {"source": keys["data"], "task": keys["task"], "images": keys["images"]}


def of_data(config: Document, function: Callable[..., Any], wildcards: Any) -> Any:
    """Return what a function of `data_sources`, such as `local_files`, says of a model's data."""
    return function(**data_source(config, wildcards.model))


def of_checkpoint(config: Document, function: Callable[[str], Any], wildcards: Any) -> Any:
    """Return what a function of `checkpoint_source` says of a model's checkpoint."""
    return function(config["models"][wildcards.model]["checkpoint"])


def training_examples(config: Document, wildcards: Any) -> str:
    """Return the train split, or data.json with its labels for a checkpoint that learns nothing.

    Random weights have no tokenizer: theirs is made of the train split.
    """
    model, folder = config["models"][wildcards.model], f"artifacts/{wildcards.model}"
    learns = model["train"] or model.get("qat") or model["checkpoint"].startswith("scratch:")
    return f"{folder}/splits/train.json" if learns else f"{folder}/data/data.json"


def of_build(
    config: Document, function: Callable[[Document, str, Variant], Any], engine: str, wildcards: Any
) -> Any:
    """Return what the function says of the variant that a build rule of that engine builds."""
    variant = parse(f"{wildcards.device}-{engine}-{wildcards.rest}")
    return function(config, wildcards.model, variant)


def engine_inputs(config: Document, model: str, variant: Variant) -> dict[str, str]:
    """Return the inputs of the build of a variant of a model.

    `source` is the checkpoint or the ONNX file, quantized for a variant with a scheme, as it is for
    one that is quantized already; or the engine.json of the variant whose quantized model it
    shares. An engine that collects its own statistics also gets the calibration cache, its ONNX
    file, the calibration split and the checkpoint.
    """
    folder = f"artifacts/{model}"
    onnx = f"{folder}/model.simplified.onnx"
    checkpoint = f"{folder}/checkpoint/checkpoint.json"
    if variant.scheme is not None:
        return {"source": quantized_onnx(config, model, variant)}
    if variant.quantized_as is not None:
        return {"source": engine_manifest(model, variant.quantized_as)}
    if variant.precision == GIVEN:
        return {"source": f"{folder}/model.onnx"}
    source = {"source": checkpoint if from_checkpoint(config, variant.engine) else onnx}
    if variant.calibration is None:
        return source
    return source | {
        "onnx": onnx,
        "calibration": f"{folder}/calibration/{variant.calibration}.json",
        "data": f"{folder}/splits/calibration.json",
        "checkpoint": checkpoint,
    }


def build_inputs(config: Document, wildcards: Any) -> dict[str, str]:
    """Return the inputs of the build of the variant of the wildcards, their names with a prefix."""
    found = engine_inputs(config, wildcards.model, parse(wildcards.variant))
    return {f"{PREFIX}{name}": path for name, path in found.items()}


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


def caches_of(jobs: Jobs) -> list[tuple[str, str]]:
    """Return model and name of each calibration cache."""
    return sorted({(model, name) for model, variant in jobs if (name := variant.statistics)})


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


def judged_input(wildcards: Any) -> dict[str, str]:
    """Return the record of accuracy that precedes the times of a quantized variant.

    Examples that are added change none of its times.
    """
    from snakemake.io import ancient

    if parse(wildcards.variant).precision not in QUANTIZED:
        return {}
    return {"judged": ancient(f"reports/{wildcards.model}/{wildcards.variant}.accuracy.json")}


def counted_inputs(
    config: Document, variants: Mapping[tuple[str, str], Iterable[Variant]], wildcards: Any
) -> dict[str, str]:
    """Return the simplified ONNX whose operations are counted, where a planned variant reads it."""
    model = wildcards.model
    own = variants.get((model, wildcards.device), ())
    if any(v.calibration or not from_checkpoint(config, v.engine) for v in own):
        return {"onnx": f"artifacts/{model}/model.simplified.onnx"}
    return {}


def collapse_inputs(
    config: Document, baselines: Mapping[str, Mapping[str, str]], wildcards: Any
) -> dict[str, str]:
    """Return what shows that a quantized variant has collapsed: its baseline, and its Q/DQ file."""
    model, variant = wildcards.model, parse(wildcards.variant)
    if variant.precision not in QUANTIZED:
        return {}
    found = {"baseline": f"reports/{model}/{baselines[model][variant.place]}.accuracy.json"}
    if variant.scheme is not None:
        found["quantized"] = quantized_onnx(config, model, variant)
    return found


def quantized_onnx(config: Document, model: str, variant: Variant) -> str:
    """Return the quantized ONNX of `variant`, for int8-auto the one mixed by the search."""
    mixed = "-auto" if variant.precision == AUTO else ""
    name = f"{scheme_of(config, variant)}-{variant.calibration}{mixed}"
    return f"artifacts/{model}/quantized/{name}.onnx"


def prepared_files(config: Document, jobs: Jobs, wildcards: Any = None) -> list[str]:
    """Return the files that hold the seconds, those of all variants without duplicates."""
    return list(dict.fromkeys(path for job in jobs for path in files_of(config, *job)))


def prepared(
    config: Document, jobs: Jobs, wildcards: Any = None
) -> dict[str, dict[str, list[int]]]:
    """Return which of `prepared_files` are those of each model and variant, none in float."""
    places = {path: place for place, path in enumerate(prepared_files(config, jobs))}
    found: dict[str, dict[str, list[int]]] = {}
    for model, variant in jobs:
        own = [places[path] for path in files_of(config, model, variant)]
        found.setdefault(model, {})[str(variant)] = own
    return found


def files_of(config: Document, model: str, variant: Any) -> list[str]:
    """Return the files with the seconds of each job before the engine of a variant, in their order.

    The manifest of an engine, else the `benchmark` of the rule; none of the search, which records
    its own seconds.
    """
    paths = map(PurePosixPath, int8_files(config, model, variant))
    return [
        str(path if path.name == "engine.json" else path.with_suffix(".tsv"))
        for path in paths
        if path.parent.name != "search"
    ]


def graphs_of(config: Document, jobs: Jobs) -> list[tuple[str, str]]:
    """Return model and graph of each ONNX file that the report shows, of those made anyway.

    Of quantized files that differ only in method and samples the first, and each that is mixed.
    """
    variants: dict[str, list[Variant]] = {}
    for model, variant in jobs:
        variants.setdefault(model, []).append(variant)
    found: list[tuple[str, str]] = []
    for model, own in variants.items():
        fed = [one for one in own if one.calibration or not from_checkpoint(config, one.engine)]
        wanted = set(config["graphs"])
        # the quantized file of a model that is quantized already
        if OF_INT8 in wanted and any(one.precision == GIVEN for one in own):
            wanted.add(EXPORTED)
        first: dict[tuple[Any, ...], str] = {}
        for variant in fed if OF_INT8 in config["graphs"] else ():
            if variant.scheme is not None:
                name = PurePosixPath(quantized_onnx(config, model, variant)).stem
                mixed = name if variant.precision == AUTO else None
                first.setdefault((scheme_of(config, variant), variant.repair, mixed), name)
        plain = [graph for graph in ONNX_FILES if graph in wanted and fed]
        found += [(model, graph) for graph in (*plain, *first.values())]
    return found


def searches_of(config: Document, jobs: Jobs) -> list[tuple[str, str, str]]:
    """Return model, scheme and calibration of each search for int8-auto."""
    return list(
        dict.fromkeys(
            (model, scheme, calibration)
            for model, variant in jobs
            if variant.precision == AUTO
            and (scheme := scheme_of(config, variant))
            and (calibration := variant.calibration)
        )
    )


def graph_inputs(searches: list[tuple[str, str, str]], wildcards: Any) -> dict[str, str]:
    """Return the ONNX file of a graph, and with int8-auto the costs of its operators.

    Costs belong to a scheme and to operator names, which do not change after simplification.
    """
    model, graph = wildcards.model, wildcards.graph
    folder = f"artifacts/{model}"
    onnx = f"{folder}/{ONNX_FILES.get(graph, f'quantized/{graph}.onnx')}"
    measured = [
        f"{scheme}-{calibration}"
        for name, scheme, calibration in searches
        if name == model and (graph == SIMPLIFIED or graph.startswith(f"{scheme}-"))
    ]
    measured.sort(key=lambda name: not re.match(rf"{name}(-|$)", graph))
    costs = {"costs": f"{folder}/costs/{measured[0]}.json"} if measured else {}
    return {"onnx": onnx, **costs}


def bundle_programs(config: Document, scripts: str, wildcards: Any) -> list[str]:
    """Return the programs for an engine and a task; for an engine that has none, the others."""
    engine = parse(wildcards.variant).engine
    names = [*PROGRAMS, "images" if is_of_images(config, wildcards.model) else "texts"]
    names += [f"engines/{engine}"] if ENGINES[engine].bundled else []
    return [f"{scripts}/{FOLDER}/{name}.py" for name in names]

"""The files of a model and of its variants, by the jobs that make and read them."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from tightrope.engine_table import ENGINES
from tightrope.machine.host import saturates
from tightrope.plan.hosts import Document, Jobs, known_machine, planning_host
from tightrope.variants import AUTO, CALIBRATION, GIVEN, SCHEMES, Variant, either

EXPORTED, SIMPLIFIED, OF_INT8 = "exported", "simplified", "quantized"
# a graph is named by its stage, or by the name of a quantized ONNX file
GRAPH = rf"{EXPORTED}|{SIMPLIFIED}|(?:{either(SCHEMES)})-{CALIBRATION}(?:-auto)?"
ONNX_FILES = {EXPORTED: "model.onnx", SIMPLIFIED: "model.simplified.onnx"}
# the programs of bundles
FOLDER = "tightrope/bundle/programs"


def data_source(config: Document, model: str) -> dict[str, Any]:
    """Return the arguments of `data_sources` for the data of a model."""
    keys = config["models"][model]
    return {"source": keys["data"], "task": keys["task"], "images": keys["images"]}


def paths(path: str, rows: Iterable[str | tuple[Any, ...]]) -> list[str]:
    """Return the path for each row, whose values take the places of its wildcards in their order.

    A row of one value is that value. Unlike `collect` it is not called where a job parses the
    Snakefile.
    """
    pattern = re.sub(r"\{\w+\}", "{}", path)
    return [pattern.format(*([row] if isinstance(row, str) else row)) for row in rows]


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


def quantized_onnx(config: Document, model: str, variant: Variant) -> str:
    """Return the quantized ONNX of `variant`, for int8-auto the one mixed by the search."""
    mixed = "-auto" if variant.precision == AUTO else ""
    name = f"{scheme_of(config, variant)}-{variant.calibration}{mixed}"
    return f"artifacts/{model}/quantized/{name}.onnx"


def prepared_files(config: Document, jobs: Jobs) -> list[str]:
    """Return the files that hold the seconds, those of all variants without duplicates."""
    return list(dict.fromkeys(path for job in jobs for path in files_of(config, *job)))


def prepared(config: Document, jobs: Jobs) -> dict[str, dict[str, list[int]]]:
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

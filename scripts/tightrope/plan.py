"""What the Snakefile needs to know: the plan of jobs from the configuration, and their inputs."""

import os
import sys
from pathlib import Path
from typing import IO, Any, NamedTuple

from tightrope.config import Document, checked
from tightrope.errors import ConfigError
from tightrope.host import describe_host, fingerprint, numerics_fingerprint
from tightrope.provenance import library_versions
from tightrope.run import delete_failed, delete_reports, end_strictly, executes_jobs, take_run_lock
from tightrope.variants import ENGINES, Variant, baseline, configured, parse

ATTEMPTS = "TIGHTROPE_ATTEMPTS"
REPORTS = [Path(f"reports/summary.{suffix}") for suffix in ("json", "csv", "html")]


class Plan(NamedTuple):
    """Models, variants that have jobs and those that cannot run here, and the host keys.

    `traffic`: the variants that are also measured under real traffic.
    """

    models: list[str]
    variants: list[Variant]
    traffic: list[Variant]
    unavailable: list[tuple[str, str, str]]
    host: str
    numerics: str


def checked_or_exit(config: Document, schema: str) -> Document:
    """The checked configuration; an error ends the process with its one line."""
    try:
        return checked(config, schema)
    except ConfigError as error:
        sys.exit(str(error))


def make_plan(config: Document) -> Plan:
    """The variants to build here, and why the others are unavailable."""
    host = describe_host()
    auto = config["host"] == "auto"
    variants = configured(config)
    reasons = {v: reason for v in variants if (reason := unavailable_reason(v, host))}
    models = list(config["models"])
    return Plan(
        models,
        [variant for variant in variants if variant not in reasons],
        [v for v in variants if v not in reasons and str(v) in config["traffic"]["variants"]],
        [(model, str(v), reason) for model in models for v, reason in reasons.items()],
        fingerprint(host) if auto else config["host"],
        numerics_fingerprint(host) if auto else config["host"],
    )


def unavailable_reason(variant: Variant, host: dict[str, Any]) -> str | None:
    """Why this variant cannot run on `host`, else None."""
    if variant.device == "cpu":
        return None
    if host["gpu"] is None:
        return "no NVIDIA GPU"
    return "not yet: this version runs engines on the cpu only"


def begin_run(workflow: Any, config: Document, plan: Plan) -> IO[str] | None:
    """The main process's part before the DAG is built; the run lock, to be kept."""
    if not workflow.is_main_process or not executes_jobs(sys.argv):
        return None
    lock = take_run_lock()
    if lock is not None:
        if config["retry_failed"]:
            delete_failed(path for paths in records(plan).values() for path in paths)
        delete_reports(REPORTS, records(plan))
    if config["strict"]:
        end_strictly("reports/summary.json")
    return lock


def is_last_attempt(workflow: Any, attempt: int) -> int:
    """1 when the job gets no attempt after this one, else 0.

    The main process knows Snakemake's --retries; a cluster's nodes, where it is 0, read how
    many attempts there are from the environment that the main process passes on.
    """
    if workflow.is_main_process and workflow.execution_settings is not None:
        os.environ[ATTEMPTS] = str(workflow.execution_settings.retries + 1)
    return int(attempt >= int(os.environ.setdefault(ATTEMPTS, "1")))


def records(plan: Plan) -> dict[tuple[str, str], list[str]]:
    """The files that may hold a failure, of each planned model and variant."""
    return {
        (model, str(variant)): [
            f"artifacts/{model}/engines/{variant}/engine.json",
            f"reports/{model}/{variant}.latency.json",
            f"reports/{model}/{variant}.accuracy.json",
            *[f"reports/{model}/{variant}.traffic.json"] * (variant in plan.traffic),
        ]
        for model in plan.models
        for variant in plan.variants
    }


def onnxruntime_source(model: str, device: str, rest: str) -> str:
    """The ONNX file of variant `{device}-onnxruntime-{rest}`: the quantized one for int8."""
    variant = parse(f"{device}-onnxruntime-{rest}")
    if variant.scheme is None:
        return f"artifacts/{model}/model.simplified.onnx"
    return f"artifacts/{model}/quantized/{variant.scheme}-{variant.calibration}.onnx"


def openvino_input(model: str, device: str, rest: str) -> dict[str, str]:
    """Inputs of variant `{device}-openvino-{rest}`: for int8 the calibration samples too."""
    variant = parse(f"{device}-openvino-{rest}")
    source = {"source": f"artifacts/{model}/model.simplified.onnx"}
    if variant.calibration is None:
        return source
    return source | {
        "calibration": f"artifacts/{model}/calibration/{variant.calibration}.json",
        "data": f"artifacts/{model}/data/data.json",
        "checkpoint": f"artifacts/{model}/checkpoint/checkpoint.json",
    }


def baseline_engine(model: str, variant: str) -> str:
    """The engine.json that `variant` is compared with, its own for the baseline."""
    return f"artifacts/{model}/engines/{baseline(parse(variant).device)}/engine.json"


def rests(plan: Plan) -> set[str]:
    """What stands behind device and engine in the names of the planned variants."""
    return {str(one).removeprefix(f"{one.device}-{one.engine}-") for one in plan.variants}


def engine_modules(variant: str, *, baseline: bool = False) -> list[str]:
    """Source files of the engine of `variant`, and of its baseline's where asked for."""
    return [f"tightrope/engines/{engine}.py" for engine in engines_of(variant, baseline)]


def engine_libraries(variant: str, *, baseline: bool = False) -> dict[str, str | None]:
    """Installed versions of the runtime of `variant`, and of its baseline's where asked for."""
    engines = engines_of(variant, baseline)
    return library_versions(*[name for one in engines for name in ENGINES[one].libraries])


def traffic_settings(config: Document) -> Document:
    """`traffic` of the configuration without its variants: another one changes no other's job."""
    return {key: value for key, value in config["traffic"].items() if key != "variants"}


def traffic_libraries(variant: str) -> dict[str, str | None]:
    """Installed versions of the runtime of `variant` and of LoadGen."""
    return engine_libraries(variant) | library_versions("mlcommons-loadgen")


def engines_of(name: str, with_baseline: bool) -> list[str]:
    """The engines that take part when variant `name` is measured."""
    variant = parse(name)
    rival = [baseline(variant.device).engine] if with_baseline else []
    return sorted({variant.engine, *rival})

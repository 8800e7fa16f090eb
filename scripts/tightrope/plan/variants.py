"""Planned variants of a model: configured ones that exist, and their baselines."""

from collections.abc import Sequence

from tightrope.engine_table import ENGINES
from tightrope.errors import ConfigError
from tightrope.machine.lacks import missing_instructions
from tightrope.plan.hosts import Document, hosts_of, known_machine
from tightrope.variants import (
    AUTO,
    CALIBRATED,
    DEVICES,
    GIVEN,
    QAT,
    QUANTIZED,
    UNQUANTIZED,
    Variant,
    baseline,
    is_calibrated,
    is_onnx,
    runs_given_files,
)


def configured(config: Document, model: str, host: Document) -> list[Variant]:
    """Return every configured variant of `model`, baselines included.

    Each precision of an engine is planned on the configured devices that support it, of a model
    that is quantized already as `as_given` says. Raises ConfigError for a precision that no device
    has. On a CPU like `host`, see `fp32_fallback`.
    """
    keys, found = config["models"][model], list[Variant]()
    # a model with learnt ranges has no others
    methods = [QAT] if keys.get("qat") else config["calibration"]["methods"]
    for name, devices in hosts_of(config):
        found += [baseline(device, keys["checkpoint"], name) for device in devices]
        for engine, precisions in config["engines"].items():
            planned = []
            for precision in precisions:
                own = [
                    Variant(device, engine, precision, host=name)
                    for device in devices_with(engine, precision)
                    if device in devices
                ]
                if keys["quantized"]:
                    own = [given for variant in own for given in as_given(variant)]
                for asked in own:
                    planned += with_calibrations(asked, config, methods)
            found += fp32_fallback(config, planned, host) + planned
    return list(dict.fromkeys(found))


def kind_of(model: Document) -> tuple[bool, bool, bool]:
    """Return what `configured` asks of a model: models of one kind have the same variants."""
    return is_onnx(model["checkpoint"]), bool(model["quantized"]), bool(model.get("qat"))


def as_given(variant: Variant) -> list[Variant]:
    """Return what is planned in the place of `variant` for a file that is quantized already.

    The file as it is for a precision that needs calibration, nothing for ranges of each call, and
    `variant` itself in float. An engine that cannot run such files keeps its variants: they are
    built from a checkpoint, and unavailable.
    """
    if not runs_given_files(variant) or variant.precision not in QUANTIZED:
        return [variant]
    return [variant._replace(precision=GIVEN)] if variant.precision in CALIBRATED else []


def devices_with(engine: str, precision: str) -> list[str]:
    """Return the devices on which the engine has a precision; raise ConfigError for none."""
    precisions = ENGINES[engine].precisions
    found = [device for device in DEVICES if precision in precisions.get(device, ())]
    if not found:
        known = "; ".join(f"on {device} {', '.join(names)}" for device, names in precisions.items())
        raise ConfigError(
            f"config: engines.{engine}: {precision} exists on no device; {engine} has {known}"
        )
    return found


def fp32_fallback(config: Document, planned: list[Variant], host: Document) -> list[Variant]:
    """Return fp32 in place of an engine's float precisions that `host` would only emulate.

    Without a float variant the report cannot say whether to quantize. Empty where one of the
    `planned` variants runs natively in float, or none is quantized.
    """
    on_cpu = [one for one in planned if one.device == "cpu"]
    in_float = [one for one in on_cpu if one.precision in UNQUANTIZED]
    computed = [one for one in on_cpu if not only_emulated(config, one, host)]
    if (
        in_float
        and not any(one in computed for one in in_float)
        and any(one.precision in QUANTIZED for one in computed)
    ):
        return [in_float[0]._replace(precision="fp32")]
    return []


def only_emulated(config: Document, variant: Variant, host: Document) -> str | None:
    """Return why the CPU of `host` would only emulate `variant`, None where it is planned anyway.

    It is planned with `emulated: true`, and where the instructions of its nodes are unknown here.
    """
    machine = known_machine(config, variant, host)
    if config["emulated"] or machine is None:
        return None
    return missing_instructions(variant, machine)


def with_calibrations(variant: Variant, config: Document, wanted: Sequence[str]) -> list[Variant]:
    """Return `variant`, or if it needs calibration one per `wanted` method and sample count.

    A variant built from quantized ONNX is also returned for each of these with each repair.
    """
    if not is_calibrated(variant):
        return [variant]
    calibration = config["calibration"]
    known = ENGINES[variant.engine].methods
    if variant.precision == AUTO:
        known = tuple(method for method in known if method != "random")
    methods = [method for method in wanted if method in known]
    if not methods:
        raise ConfigError(
            f"config: engines.{variant.engine}: {variant.precision} needs one of the calibration "
            f"methods {', '.join(one for one in known if one != QAT)}, calibration.methods has "
            f"{', '.join(wanted)}; "
            f"add one of them, or leave {variant.precision} of {variant.engine} out"
        )
    plain = [
        variant._replace(calibration=f"{method}-{count}")
        for method in methods
        for count in calibration["samples"]
    ]
    repaired = [
        one._replace(calibration=f"{one.calibration}-{repair}")
        for one in plain
        for repair, settings in config["repairs"].items()
        if takes_repair(one, settings)
    ]
    return [*plain, *repaired]


def takes_repair(variant: Variant, settings: Document) -> bool:
    """Return whether a variant can have a repair with these settings.

    TensorRT's schemes do not support asymmetric activations, whose zero-points are not 0. They
    alone quantize attention.
    """
    if variant.precision == AUTO or variant.scheme is None:
        return False
    if variant.scheme in ("s8s8", "e4m3"):
        return settings["activations"] != "asymmetric"
    return not settings["attention"]

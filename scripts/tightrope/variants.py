"""Names of variants: place, engine, precision and calibration, parsed against closed lists.

The place is a device, with `hosts` of the configuration a device of one of them: `cpu@genoa`.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from tightrope.engine_table import BASELINE, ENGINES
from tightrope.errors import ConfigError

DEVICES = ("cpu", "cuda")
# of a place, between its device and its host
AT = "@"
HOST = "[A-Za-z0-9][A-Za-z0-9_]*"
# qat takes the ranges that a model has learnt; it is planned for no other, and never configured
QAT = "qat"
METHODS = ("minmax", "entropy", "percentile", "random", "nncf", QAT)
CALIBRATED = ("int8", "int8-auto", "int8-bf16", "int8-fp16", "fp8")
# the types of an ONNX file that is quantized already; never listed in the configuration
GIVEN = "given"
DYNAMIC = "int8-dynamic"
QUANTIZED = (*CALIBRATED, DYNAMIC, GIVEN)
UNQUANTIZED = ("fp32", "tf32", "bf16", "fp16")
# u8s7 is u8s8 for CPUs that saturate; s8s8 and e4m3 have zero-point 0 only
SCHEMES = ("u8s8", "u8s7", "s8s8", "e4m3")
# mixed precision from a search: a scheme without repairs, with ranges of real samples
AUTO = "int8-auto"
# a repair is a key of `repairs` of the configuration
REPAIR = "[a-z][a-z0-9_]*"

PRECISIONS = tuple(
    sorted({GIVEN}.union(*(name for one in ENGINES.values() for name in one.precisions.values())))
)


class Variant(NamedTuple):
    """A way to run a model; `str()` gives its name, which is its path."""

    device: str
    engine: str
    precision: str
    calibration: str | None = None
    host: str | None = None

    def __str__(self) -> str:
        return f"{self.place}-{self.engine}-{self.rest}"

    @property
    def place(self) -> str:
        """Return where it runs: the device, with a host `device@host`."""
        return place_of(self.device, self.host)

    @property
    def rest(self) -> str:
        """Return its name without place and engine."""
        return "-".join(part for part in (self.precision, self.calibration) if part)

    @property
    def anywhere(self) -> "Variant":
        """Return the variant without its host."""
        return self._replace(host=None)

    @property
    def scheme(self) -> str | None:
        """Return the scheme of the quantized ONNX that it is built from, None without a scheme."""
        engine, method = ENGINES[self.engine], (self.calibration or "").partition("-")[0]
        if not method or method in engine.own_statistics or self.quantized_as is not None:
            return None
        found = (engine.schemes or {}).get(self.device)
        return "e4m3" if found and self.precision == "fp8" else found

    @property
    def quantized_as(self) -> "Variant | None":
        """Return the variant whose quantized model it executes in another float type, else None."""
        return self._replace(precision="int8") if self.precision == "int8-bf16" else None

    @property
    def statistics(self) -> str | None:
        """Return the name of the calibration cache: method and sample count, without the repair."""
        return "-".join(self.calibration.split("-")[:2]) if self.calibration else None

    @property
    def repair(self) -> str | None:
        """Return the repair in its calibration's name, None without a repair."""
        return "-".join((self.calibration or "").split("-")[2:]) or None


def place_of(device: str, host: str | None) -> str:
    """Return the name of a device of a host, that of the device alone without a host."""
    return f"{device}{AT}{host}" if host else device


def at_place(names: Mapping[str, str], device: str, host: str | None) -> str | None:
    """Return the name by place that is of a device of that host, else of the device alone."""
    return names.get(place_of(device, host), names.get(device))


def device_of(place: str) -> str:
    """Return the device of a place."""
    return place.partition(AT)[0]


def host_of(place: str) -> str | None:
    """Return the host of a place, None for a device alone."""
    return place.partition(AT)[2] or None


def either(names: Any) -> str:
    """Return a regular expression for any of `names`, longer names first."""
    return "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))


CALIBRATION = rf"(?:{either(METHODS)})-[1-9][0-9]*(?:-{REPAIR})?"
NAME = re.compile(
    rf"(?P<device>{either(DEVICES)})(?:{AT}(?P<host>{HOST}))?-(?P<engine>{either(ENGINES)})"
    rf"-(?P<precision>{either(PRECISIONS)})(?:-(?P<calibration>{CALIBRATION}))?"
)


@cache
def parse(name: str) -> Variant:
    """Return the variant of a name; raise ConfigError for an impossible variant."""
    match = NAME.fullmatch(name)
    if match is None:
        raise ConfigError(
            f"{name}: no variant; a name is device-engine-precision, with hosts "
            "device@host-engine-precision, for int8 with "
            "-method-samples or -method-samples-repair "
            f"(devices {', '.join(DEVICES)}; engines {', '.join(ENGINES)}; "
            f"precisions {', '.join(PRECISIONS)}; methods {', '.join(METHODS)})"
        )
    variant = Variant(**match.groupdict())
    check(variant)
    return variant


def check(variant: Variant) -> None:
    """Raise ConfigError where engine, device, precision and calibration do not fit together."""
    devices = ENGINES[variant.engine].precisions
    if variant.device not in devices:
        raise ConfigError(
            f"{variant}: impossible variant, {variant.engine} runs on {', '.join(devices)} only; "
            f"leave it out with --config 'engines={{{variant.engine}: []}}'"
        )
    given = variant.precision == GIVEN and runs_given_files(variant)
    if variant.precision not in devices[variant.device] and not given:
        raise ConfigError(
            f"{variant}: impossible variant, {variant.engine} on {variant.device} has "
            f"{', '.join(devices[variant.device])}"
        )
    if is_calibrated(variant) != (variant.calibration is not None):
        word = "needs" if is_calibrated(variant) else "takes no"
        raise ConfigError(f"{variant}: impossible variant, {variant.precision} {word} calibration")
    method = (variant.calibration or "").partition("-")[0]
    if method and method not in ENGINES[variant.engine].methods:
        raise ConfigError(
            f"{variant}: impossible variant, {variant.engine} is calibrated with "
            f"{', '.join(ENGINES[variant.engine].methods) or 'nothing'}"
        )
    if variant.repair and (variant.scheme is None or variant.precision == AUTO):
        raise ConfigError(
            f"{variant}: impossible variant, {variant.engine} {variant.precision} takes no repair"
        )


def runs_given_files(variant: Variant) -> bool:
    """Return whether the engine runs files that are quantized already on the variant's device."""
    return variant.device in ENGINES[variant.engine].given


def is_calibrated(variant: Variant) -> bool:
    """Return whether its activation ranges come from calibration samples, not from each call."""
    return variant.precision in CALIBRATED and bool(ENGINES[variant.engine].methods)


def baseline(device: str, checkpoint: str, host: str | None = None) -> Variant:
    """Return the baseline variant of a device of a host, for the source of the checkpoint.

    PyTorch eager in fp32, or ONNX Runtime in fp32 where the model is an ONNX file.
    """
    engine = "onnxruntime" if is_onnx(checkpoint) else BASELINE
    return Variant(device, engine, "fp32", host=host)


def is_onnx(checkpoint: str) -> bool:
    """Return whether the source of a checkpoint is an ONNX file, without a PyTorch model."""
    return checkpoint.startswith("onnx:")

"""Read and write calibration caches of TensorRT up to version 10: text, one scale per tensor."""

import math
import re
import struct
from pathlib import Path

import numpy as np

from tightrope.artifacts.files import read_bytes, sha256, write_bytes
from tightrope.errors import TightropeError, WorkFailed
from tightrope.int8.calibrate import read_any_cache, write_cache
from tightrope.onnx.file import load_onnx

Ranges = dict[str, list[float]]
# TensorRT 10.0.0 as the header writes it; 8.6.1 is 8601
VERSION = "100000"
# TensorRT's algorithms and the equivalent methods; its legacy calibrator cuts at a quantile
METHODS = {
    "MinMaxCalibration": "minmax",
    "EntropyCalibration": "entropy",
    "EntropyCalibration2": "entropy",
    "LegacyCalibration": "percentile",
}
# for a method with two algorithms, the later is written
ALGORITHMS = {method: algorithm for algorithm, method in METHODS.items()}
HEADER = re.compile(r"TRT-[0-9A-Za-z.]+-(?P<algorithm>\w+)")
# a tensor's name may contain ": " itself: the last occurrence separates
LINE = re.compile(r"(?P<tensor>.+): (?P<scale>[0-9a-fA-F]{8})")
CACHE_NAME = re.compile(r"(?P<method>[a-z]+)-(?P<samples>[1-9][0-9]*)\.json")
STEPS = 127  # symmetric INT8 steps on each side of zero


def export_text(ranges: Ranges, *, method: str, version: str = VERSION) -> str:
    """Return the header, then per tensor max(|low|, |high|) / 127 as big-endian float32 in hex.

    Raises TightropeError for a method that TensorRT does not have, a version that is not all
    digits, and a tensor whose name or scale the format cannot hold.
    """
    if method not in ALGORITHMS:
        raise TightropeError(
            f"TensorRT has no calibration by {method}; export a cache of {', '.join(ALGORITHMS)}"
        )
    if not re.fullmatch("[0-9]+", version):
        raise TightropeError(f"{version}: no version; TensorRT 8.6.1 is 8601, 10.3.0 is 100300")
    lines = [f"TRT-{version}-{ALGORITHMS[method]}"]
    for tensor, bounds in ranges.items():
        if "\n" in tensor or "\r" in tensor:
            raise TightropeError(f"tensor {tensor!r}: its name has a line break; rename it")
        with np.errstate(over="ignore"):
            scale = np.array(max(map(abs, bounds)) / STEPS).astype(">f4")
        if not 0 < scale < math.inf:
            raise TightropeError(
                f"tensor {tensor}: the range {bounds} has no scale that is a positive float32; "
                "leave the tensor out"
            )
        lines.append(f"{tensor}: {scale.tobytes().hex()}")
    return "\n".join(lines) + "\n"


def import_text(text: str, *, path: Path | str) -> tuple[str, Ranges]:
    """Return the method of the header and the symmetric range of each tensor.

    Raises TightropeError naming `path` and the invalid line: a header with an unknown algorithm, a
    line that is not `tensor: 8 hex digits`, a scale that is not positive and finite, a duplicate
    tensor. A text without tensors is an error too.
    """
    header, *lines = text_lines(text)
    algorithm = HEADER.fullmatch(header)
    if algorithm is None or algorithm["algorithm"] not in METHODS:
        raise TightropeError(
            f"{path}: line 1: no header of a calibration cache, {header[:60]!r}; one is "
            f"TRT-{VERSION}-EntropyCalibration2 (or {', '.join(METHODS)})"
        )
    ranges: Ranges = {}
    for number, line in enumerate(lines, start=2):
        match = LINE.fullmatch(line)
        if match is None:
            raise TightropeError(
                f"{path}: line {number}: not 'tensor: 8 hex digits' but {line[:60]!r}; the file "
                "was truncated or edited, take it from TensorRT again"
            )
        tensor = match["tensor"]
        (scale,) = struct.unpack(">f", bytes.fromhex(match["scale"]))
        if not 0 < scale < math.inf:
            raise TightropeError(
                f"{path}: line {number}: scale {scale:g} of {tensor}, which is no positive "
                "number; calibrate with TensorRT again, or take the line out"
            )
        if tensor in ranges:
            raise TightropeError(
                f"{path}: line {number}: {tensor} for the second time; take one of the lines out"
            )
        ranges[tensor] = [-STEPS * scale, STEPS * scale]
    if not ranges:
        raise TightropeError(f"{path}: no tensors after the header; calibrate again")
    return METHODS[algorithm["algorithm"]], ranges


def export_cache(
    cache_json: Path | str, target: Path | str, *, version: str = VERSION, force: bool = False
) -> int:
    """Write the ranges of a cache as TensorRT's text; return the number of tensors left out.

    Those were zero on every sample: TensorRT accepts no scale of 0. Raises TightropeError for a
    cache without ranges, and where `target` exists, unless `force`.
    """
    require_free(target, force=force)
    try:
        cache = read_any_cache(cache_json)
    except WorkFailed as error:
        raise TightropeError(f"{cache_json}: {error}") from error
    if not cache["ranges"]:
        raise TightropeError(
            f"{cache_json}: {cache['method']} keeps no ranges; export a cache of "
            f"{', '.join(ALGORITHMS)}"
        )
    kept = {tensor: bounds for tensor, bounds in cache["ranges"].items() if any(bounds)}
    try:
        text = export_text(kept, method=cache["method"], version=version)
    except TightropeError as error:
        raise TightropeError(f"{cache_json}: {error}") from error
    write_bytes(target, text.encode())
    return len(cache["ranges"]) - len(kept)


def import_cache(
    text: Path | str, onnx: Path | str, target: Path | str, *, force: bool = False
) -> int:
    """Write TensorRT's text as the cache of `onnx`; return the number of tensors left out.

    Those are not in the model. The file name of `target`, METHOD-SAMPLES.json, gives the sample
    count, which the text lacks. Raises TightropeError for another file name, a file that is not
    UTF-8, a method that contradicts the header, a text of another model, and where `target` exists,
    unless `force`.
    """
    name = CACHE_NAME.fullmatch(Path(target).name)
    if name is None:
        raise TightropeError(
            f"{target}: the name of a cache is METHOD-SAMPLES.json, as in entropy-512.json"
        )
    require_free(target, force=force)
    try:
        content = read_bytes(text).decode()
    except UnicodeDecodeError as error:
        raise TightropeError(f"{text}: no text, so no calibration cache of TensorRT") from error
    method, ranges = import_text(content, path=text)
    header = text_lines(content)[0]
    if method != name["method"]:
        raise TightropeError(
            f"{target}: {name['method']} by its name, {text} says {header}; "
            f"name it {method}-{name['samples']}.json"
        )
    graph = load_onnx(onnx).graph
    tensors = {one.name for one in graph.input} | {
        name for node in graph.node for name in node.output
    }
    kept = {tensor: bounds for tensor, bounds in ranges.items() if tensor in tensors}
    if not kept:
        raise TightropeError(
            f"{text}: none of its {len(ranges)} tensors is in {onnx}; give TensorRT that very file "
            "to calibrate"
        )
    write_cache(
        target,
        method=method,
        samples=int(name["samples"]),
        options={},
        model_sha256=sha256(onnx),
        samples_sha256=None,
        imported=header,
        libraries={},
        ranges=kept,
        channels={},
    )
    return len(ranges) - len(kept)


def text_lines(text: str) -> list[str]:
    """Return header and lines for LF or CRLF endings; other separators belong to a name."""
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")


def require_free(target: Path | str, *, force: bool) -> None:
    """Raise TightropeError where `target` is a folder, or exists without `force`."""
    if Path(target).is_dir():
        raise TightropeError(f"{target}: a folder; give the path of a file")
    if Path(target).exists() and not force:
        raise TightropeError(f"{target}: exists; take another path, or --force to replace it")

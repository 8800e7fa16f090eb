"""The engines: what each can do and needs, which the SPEC in its module says.

A SPEC is read without importing its module, which imports a runtime, so it is in no digest: what a
job reads of one stands in its params (`plan/jobs.py`), and another SPEC makes only that stale.
"""

import re
from pathlib import Path
from typing import NamedTuple

# calibration methods for the ranges of an ONNX file; nncf collects its own statistics
RANGES = ("minmax", "entropy", "percentile", "random", "qat")
# per type, names of a host's `isa` with multiply instructions for it; instruction sets that only
# convert (avx_ne_convert) or store the type compute products in fp32
INSTRUCTIONS = {"bf16": ("avx512_bf16", "amx_bf16", "bf16"), "fp16": ("avx512_fp16", "asimdhp")}
# for oneDNN; with only AVX-512 it computes bf16 in fp32, and with only AVX2 PyTorch does not use it
ONEDNN = {"bf16": INSTRUCTIONS["bf16"]}
# the engine that the others are compared with
BASELINE = "pytorch"
# as ruff formats it
SPEC = re.compile(r"^SPEC = (Engine\(\n.*?\n\))$", re.MULTILINE | re.DOTALL)


class Engine(NamedTuple):
    """Capabilities, source and requirements of one runtime."""

    # by device
    precisions: dict[str, tuple[str, ...]]
    # distributions whose versions shape the engine
    libraries: tuple[str, ...]
    # "checkpoint" or "onnx"
    source: str
    # what it is, in a few words
    about: str
    # of its marks in charts, light and dark: contrast at least 3:1 against the page, and 20 CIELAB
    # units between engines, also under deuteranopia, protanopia and tritanopia
    colour: tuple[str, str]
    # calibration methods
    methods: tuple[str, ...] = ()
    # scheme of the quantized ONNX that it is built from, by device; None where it quantizes itself
    schemes: dict[str, str] | None = None
    # methods by which it quantizes itself, though it has a scheme for the others
    own_statistics: tuple[str, ...] = ()
    # precisions that it quantizes itself and, with `reduce_range`, within 7 bits; PyTorch's
    # int8-dynamic is none of them: it always uses 7 bits
    reducible: tuple[str, ...] = ()
    # compiles one program per bucket of `buckets`
    static: bool = False
    # needs a compiler: generates C++, or links generated code
    compiler: bool = False
    # keys of `cuda` in the configuration that it uses on a GPU
    cuda: tuple[str, ...] = ()
    # per type, the CPU instruction sets of which it needs one; other types need none
    instructions: dict[str, tuple[str, ...]] | None = None
    # devices on which it runs an ONNX file that is quantized already as it is
    given: tuple[str, ...] = ()
    # its operators are timed on a CPU with `profile: {variants: auto}`, by its `operator_times`
    profiled: bool = False
    # distributions that its program in a bundle imports, beside those that every one imports; None
    # where it has no program
    bundled: tuple[str, ...] | None = None
    # memory in MB and longest time in minutes of a build
    mem_mb: int = 8000
    minutes: int = 30


def read_specs(folder: Path) -> dict[str, Engine]:
    """Return the SPEC of each module in a folder that has one, by the name of the module.

    That of the baseline is the first.
    """
    paths = sorted(folder.glob("*.py"), key=lambda path: (path.stem != BASELINE, path.stem))
    texts = {path.stem: path.read_text() for path in paths}
    found = {name: match[1] for name, text in texts.items() if (match := SPEC.search(text))}
    return {name: eval(text, globals()) for name, text in found.items()}


ENGINES = read_specs(Path(__file__).with_name("engines"))

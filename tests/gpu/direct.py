"""The direct part of `make gpu-check`: engines of PyTorch, built and timed without Snakemake.

A BERT from scratch is the model. Each engine is built by its own module and timed in alternating
blocks with another, in child processes as in a run; one that fails is one line.
"""

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks/studies"))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from manifests import CHECKPOINT
from msgspec import to_builtins
from operations import operations
from splits import prepare_splits, split_of
from tightrope.artifacts.files import read_json
from tightrope.artifacts.manifest import Artifacts, clear_folder, read_manifest, write_manifest
from tightrope.artifacts.manifest_types import EngineManifest
from tightrope.artifacts.provenance import library_versions
from tightrope.engine_table import ENGINES
from tightrope.engines.build import build_engine
from tightrope.errors import TightropeError, WorkFailed
from tightrope.jobs.child import Limits, supervised
from tightrope.jobs.execution import Execution
from tightrope.machine.cores import physical_cores
from tightrope.measure.latency import measure_latency
from tightrope.measure.run import TimingSettings
from tightrope.records.latency import LatencyRecord
from tightrope.runtimes.shapes import in_words
from tightrope.summary.results import latency_entry
from tightrope.variants import parse

LIMITS = Limits(memory_bytes=48e9, seconds=900.0)
LIBRARIES = ("torch", "transformers", "triton")
LONG, SHORT = ((1, 128), (32, 128)), ((1, 32), (4, 32))
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}
BASE |= {"intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512}
TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
TINY |= {"intermediate_size": 128, "vocab_size": 400, "max_position_embeddings": 128}
PLAN = {"pairs": 10, "loads": 1, "min_seconds": 1.0, "min_calls": 30, "width": 0.02}
PLAN |= {"comparison_seconds": 5.0, "calls": None, "warmup_seconds": 4.0, "warmup_calls": None}
PLAN |= {"max_seconds": 60.0}
BRIEF = PLAN | {"pairs": 6, "min_seconds": 0.3, "comparison_seconds": 1.5, "warmup_seconds": 1.0}
OF_TINY = PLAN | {"pairs": 4, "min_seconds": 0.08, "min_calls": 8, "comparison_seconds": 0.5}
OF_TINY |= {"warmup_seconds": 0.3}
# seconds after which the brief check begins no other case; the last, with compiling, may take 100
BEGUN_UNTIL = 140.0
# within which the time of a second copy has to be: two processes of one engine differ by up to 1 %
SAME = 0.98, 1.02
# on which each engine on a GPU is timed as well
STREAMS = (1, 4)
# seconds that may be lost to other load, over all engines of a comparison
QUIET_SECONDS = 10.0
# sizes of the square products whose rate is the peak
LARGE, SMALL = 8192, 512
BASELINE = "pytorch-fp32"
AGAIN = f"{BASELINE}, a second copy"
SINGLE = "compile-fp16, no CUDA graph"
# what is kept of a shape's statistics
KEPT = ("p50_s", "mean_s", "throughput_per_s", "device_p50_s", "energy_j", "gpu", "samples")
KEPT += ("streams", "pairs", "disturbed", "noise")
# and of its engine
FACTS = ("import_s", "load_s", "first_call_s", "peak_rss_bytes")
Part = dict[str, Any]


class Case(NamedTuple):
    """An engine and precision under a name, and the case that it is timed beside."""

    name: str
    against: str | None = BASELINE
    graphs: bool = True
    loads: int = 1

    @property
    def engine(self) -> str:
        """Return engine and precision, as in pytorch-fp32."""
        return self.name.partition(",")[0]


ON_GPU = (
    Case(BASELINE, against=None),
    Case("pytorch-bf16"),
    Case("pytorch-tf32"),
    Case(AGAIN, loads=2),
    Case("pytorch-fp16"),
    Case("torchscript-fp16"),
    Case(SINGLE, graphs=False),
    Case("compile-fp16", against=SINGLE),
)
# what tells the most in the least time; of a compiled engine there is one
IN_BRIEF = (*ON_GPU[:4], Case("compile-fp16"))
ON_CPU = (
    Case(BASELINE, against=None),
    Case(AGAIN, loads=2),
    Case("pytorch-bf16"),
    Case("torchscript-fp32"),
    Case("compile-fp32"),
)


def run(
    folder: Path,
    device: str,
    *,
    tiny: bool,
    brief: bool,
    names: list[str],
    keep: Callable[[Part], None],
) -> Part:
    """Build and time all cases, or the baseline and those with `names`; return what was found.

    `result` is `passed`, or `failed` where a case failed or the second copy is no tie. `keep` gets
    what was found after each case, so that a check that is cut short has the rest.
    """
    began = time.monotonic()
    every = IN_BRIEF if brief and device == "cuda" else ON_GPU if device == "cuda" else ON_CPU
    cases = [one for one in every if not names or one.against is None or one.name in names]
    bench = Bench(folder, device, tiny=tiny, brief=brief)
    found: Part = {"result": "failed", "device": device, "libraries": library_versions(*LIBRARIES)}
    found["model"] = f"BERT {'tiny' if tiny else 'base'}, from scratch"
    try:
        supervised(make_model, folder, TINY if tiny else BASE, limits=LIMITS)
    except (WorkFailed, TightropeError) as error:
        print(f"direct: failed: {error}")
        return {**found, "reason": str(error)}
    found["peaks_per_s"] = measured_peaks(device, SMALL if device == "cpu" else LARGE)
    each: dict[str, Part] = {}
    for case in cases:
        at = time.monotonic() - began
        if brief and at > BEGUN_UNTIL:
            print(f"{case.name}: left out, {at:.0f} s are over", flush=True)
            continue
        each[case.name] = bench.case(case, found["peaks_per_s"])
        each[case.name]["seconds"] = time.monotonic() - began - at
        print("\n".join(lines_of(case.name, each[case.name])), flush=True)
        keep({**found, "each": each})
    tie = same(each.get(AGAIN, {}))
    right = all(one["status"] == "ok" for one in each.values()) and all(tie)
    return {**found, "each": each, "tie": tie, "result": "passed" if right else "failed"}


def make_model(folder: Path, sizes: dict[str, int]) -> None:
    """Write a classifier with random weights, from seed 0, and random requests for it."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    data, splits = folder / "data/data.json", {"train": None, "evaluation": 64}
    prepare_splits(data, source="random", columns={}, splits=splits, pool=8, seed=0)
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**sizes))
    manifest = folder / "checkpoint/checkpoint.json"
    model.save_pretrained(clear_folder(manifest))
    facts = {"max_sequence": sizes["max_position_embeddings"], "vocabulary": sizes["vocab_size"]}
    write_manifest(manifest, **{**CHECKPOINT, "source": "scratch:bert", **facts})


def measured_peaks(device: str, size: int) -> dict[str, float]:
    """Return operations per second of products of that size, by precision; {} where it fails."""
    try:
        return dict(supervised(peaks_in_child, device, size, limits=LIMITS))
    except (WorkFailed, TightropeError) as error:
        print(f"peaks: failed: {error}")
        return {}


def peaks_in_child(device: str, size: int) -> dict[str, float]:
    """Import PyTorch and measure, see `benchmarks/studies/gpu.py`."""
    from gpu import peaks

    return dict(peaks(device, size))


class Bench:
    """The model and the engines in `folder`, and how they are timed."""

    def __init__(self, folder: Path, device: str, *, tiny: bool, brief: bool = False) -> None:
        self.folder, self.device = folder, device
        self.plan = OF_TINY if tiny else BRIEF if brief else PLAN
        self.shapes = SHORT if tiny else LONG
        self.streams = () if brief else STREAMS
        libraries = library_versions(*LIBRARIES)
        self.execution = Execution(physical_cores(), LIMITS, libraries)
        self.cases = {case.name: case for case in (*ON_GPU, *ON_CPU)}
        self.checkpoint = folder / "checkpoint/checkpoint.json"

    def engine(self, case: Case) -> Path:
        """Return the engine.json of a case, built at the first call; raise WorkFailed if not."""
        words = case.name.replace(",", "").replace(" ", "-")  # a compiler is given that path
        path = self.folder / "engines" / words / "engine.json"
        if not path.exists():
            known = {"execution": self.execution, "options": self.options(case)}
            build_engine(self.variant(case), self.checkpoint, path, **known)
        manifest = read_manifest(path, EngineManifest)
        if manifest["status"] != "ok":
            raise WorkFailed(f"not built: {manifest['reason']}", transient=False)
        return path

    def variant(self, case: Case) -> str:
        """Return the name of the engine and its precision on this device."""
        return f"{self.device}-{case.engine}"

    def options(self, case: Case) -> Part:
        """Return the options of a case: what its engine reads on a GPU, nothing on a CPU."""
        read = ENGINES[case.engine.partition("-")[0]].cuda if self.device == "cuda" else ()
        batches, sequences = (sorted({*sizes}) for sizes in zip(*self.shapes, strict=True))
        known: Part = {"attention": "auto", "autotune": False, "graphs": case.graphs}
        options = {name: known[name] for name in read}
        if "graphs" in read:
            options["buckets"] = {"batch": batches, "sequence": sequences}
        return options

    def case(self, case: Case, peaks: dict[str, float]) -> Part:
        """Return `status`, and `rows` by shape or the `reason` why there are none."""
        try:
            engine = self.engine(case)
            baseline = self.engine(self.cases[case.against]) if case.against else engine
            return {"status": "ok", "rows": self.rows(case, engine, baseline, peaks)}
        except (WorkFailed, TightropeError) as error:
            reason = error.reason if isinstance(error, WorkFailed) else error
            return {"status": "failed", "reason": str(reason)}

    def rows(self, case: Case, engine: Path, baseline: Path, peaks: dict[str, float]) -> list[Part]:
        """Time the engine, paired with the baseline if that is another one."""
        config = read_json(self.checkpoint.parent / "config.json")
        settings = TimingSettings(
            plan=self.plan | {"loads": case.loads},
            quiet_seconds=QUIET_SECONDS * self.plan["min_seconds"],
            max_sequence=config["max_position_embeddings"],
            execution=self.execution,
            terminal=sys.stderr,
            shapes=[{"batch": batch, "sequence": sequence} for batch, sequence in self.shapes],
            streams=self.streams,
        )
        target = self.folder / f"{engine.parent.name}.latency.json"
        data = split_of(self.folder / "data/data.json", "timing")
        artifacts = Artifacts("bert", self.variant(case), engine, self.checkpoint, data)
        measure_latency(artifacts, baseline, target, settings)
        record = LatencyRecord.read(target)
        if reason := record.reason or record.baseline_failed:
            raise WorkFailed(reason, transient=False)
        facts = {name: getattr(record, name) for name in FACTS}
        return [
            {**row_of(record, place, config, peaks), "against": case.against, **facts}
            for place in range(len(self.shapes))
        ]


def row_of(record: LatencyRecord, place: int, config: Part, peaks: Part) -> Part:
    """Return the statistics of a shape, and the `share_of_peak` of the precision's products."""
    shape = record.shapes[place]
    entry: Part = to_builtins(latency_entry(record, place, accept_disturbed=True))
    peak = peaks.get(parse(record.variant).precision)
    work = operations(config, shape.batch, shape.sequence, shape.sequence)
    share = work / entry["mean_s"] / peak if peak and entry["mean_s"] else None
    kept = {name: entry[name] for name in KEPT}
    return {**shape.sizes, **kept, "share_of_peak": share, "speedup": entry["speedup"]}


def same(found: Part) -> list[bool]:
    """Return for each shape of a case whether its ratio to the other may be `SAME`."""
    ratios = [row["speedup"] for row in found.get("rows", ())]
    low, high = SAME
    return [
        one["ratio"] is not None and one["high"] >= low and one["low"] <= high for one in ratios
    ]


def lines_of(name: str, found: Part) -> list[str]:
    """Return a line per shape of a case, or one with the reason why it failed."""
    if found["status"] != "ok":
        return [f"{name}: failed: {found['reason']}"]
    lines = [f"{name}, {line}" for line in map(in_line, found["rows"])]
    return [*lines, f"{name}: {found['seconds']:.0f} s to build and time"]


def in_line(row: Part) -> str:
    """Return a row in words; what is not known is left out."""
    gpu, ratio = row["gpu"] or {}, row["speedup"]
    facts = [
        (row["mean_s"], lambda value: f"{value * 1e3:.3f} ms"),
        (row["device_p50_s"], lambda value: f"{value * 1e3:.3f} on the GPU"),
        (row["throughput_per_s"], lambda value: f"{value:.0f} samples/s"),
        (row["share_of_peak"], lambda value: f"{value:.1%} of the peak"),
        (row["energy_j"], lambda value: f"{value * 1e3:.3g} mJ a call"),
        (gpu.get("sm_clock_mhz"), lambda value: f"{value:.0f} MHz"),
        (gpu.get("power_w"), lambda value: f"{value:.0f} W"),
        (gpu.get("temperature_c"), lambda value: f"{value:.0f} °C"),
    ]
    facts += [
        (
            one["throughput_per_s"],
            partial("{1:.0f} samples/s on {0} stream(s)".format, one["streams"]),
        )
        for one in (row["streams"] or {"rates": ()})["rates"]
    ]
    words = [write(value) for value, write in facts if value is not None]
    if ratio and ratio["ratio"] is not None:
        interval = f"{ratio['low']:.3f} to {ratio['high']:.3f}, {ratio['verdict']}"
        words.append(f"{ratio['ratio']:.3f}x {row['against']} ({interval})")
    return f"{in_words((row['batch'], row['sequence']))}: {', '.join(words)}"

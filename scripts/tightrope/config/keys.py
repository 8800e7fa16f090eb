"""All keys of the configuration with their defaults, but those of the studies."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tightrope.config.models import Model
from tightrope.config.types import (
    DISTINCT,
    UNIQUE,
    Count,
    Counts,
    NotNegative,
    Points,
    Positive,
    Section,
    Seed,
    Shape,
    Share,
    Size,
    Sizes,
    Word,
    named,
    one_of,
)
from tightrope.engine_table import ENGINES
from tightrope.machine.host import ISA
from tightrope.variants import CALIBRATED, DEVICES, DYNAMIC, METHODS, QAT, UNQUANTIZED

Devices = Annotated[tuple[Annotated[str, one_of(*DEVICES)], ...], DISTINCT]
Precision = Annotated[str, one_of(*UNQUANTIZED, *CALIBRATED, DYNAMIC)]
Precisions = Annotated[tuple[Precision, ...], UNIQUE]
Three = Annotated[tuple[Size, ...], Meta(min_length=3, max_length=3)]


class Node(Section, frozen=True):
    """A kind of nodes of a cluster."""

    constraint: Word
    """The Slurm feature that such nodes, and no others, have (sinfo -o '%N %f')."""
    devices: Devices = ("cpu",)
    """On which variants are planned there."""
    isa: Annotated[tuple[Annotated[str, one_of(*ISA)], ...], UNIQUE] | None = None
    """What such a node can compute, of the flags that lscpu shows; null is unknown: int8 keeps its
    full range, and no precision is left out. A node without one of them fails."""
    price: Positive | None = None
    """Of an hour of such a node, see prices."""


class Buckets(Section, frozen=True):
    """Each combination of these has a static program."""

    batch: Sizes
    sequence: Sizes | UnsetType = UNSET
    """The edges; texts need both."""


# a field for each engine of the table
Engines: Any = msgspec.defstruct(
    "Engines",
    [(name, Precisions | UnsetType, UNSET) for name in ENGINES],
    bases=(Section,),
    frozen=True,
    forbid_unknown_fields=True,
)


class Cuda(Section, frozen=True):
    """How engines run on an NVIDIA GPU."""

    graphs: bool = True
    """A CUDA graph replays the calls of a shape, of all engines but eager PyTorch and ONNX
    Runtime's TensorRT provider; requests are padded up to buckets, but not for TensorRT. Without,
    the host launches each kernel of each call."""
    autotune: bool = True
    """torch.compile and AOTInductor try kernels out (max-autotune) before they choose."""
    attention: Annotated[str, one_of("auto", "flash", "efficient", "math", "cudnn", "varlen")] = (
        "auto"
    )
    """Kernels of PyTorch's attention, eager and compiled; auto is its own choice. flash takes no
    mask of padding, and a variant that cannot run so is failed. varlen, for eager PyTorch in bf16
    and fp16: the encoder computes no padding, with FlashAttention; the others take auto."""
    streams: Annotated[tuple[Annotated[int, Meta(ge=1, le=16)], ...], UNIQUE] = ()
    """Measure also inputs per second with so many programs of an engine at the same time, each on a
    stream with buffers of its own; more streams take more memory. Empty: with one call at a time
    only."""


class OnnxRuntime(Section, frozen=True):
    """How ONNX Runtime's sessions are made."""

    provider: Annotated[str, one_of("cuda", "tensorrt")] = "cuda"
    """What runs all variants of ONNX Runtime on a GPU, also the baseline of an ONNX file; tensorrt
    has fp32 and fp16."""
    fusions: bool = False
    """Fuse with onnxruntime.transformers.optimizer before the session does."""
    attention_operator: bool = False
    """Attention as one operator, ONNX's Attention of opset 23, where its form is known."""
    optimization: Annotated[str, one_of("all", "extended", "basic")] = "all"
    """Graph optimizations of the session."""
    spinning: bool = True
    """Threads spin for work within a call."""
    arena: bool = True
    """Memory arena and memory patterns."""


class OpenVino(Section, frozen=True):
    """How OpenVINO's engines are made."""

    route: Annotated[str, one_of("onnx", "pytorch")] = "onnx"
    """What is converted."""
    blobs: bool = False
    """Keep the compiled programs beside the model, to load in less time from more disk."""
    static_programs: Count | None = None
    """Static programs in memory at most, those of the buckets that come first; one dynamic program,
    which is slower, serves the others. null is one for each bucket that comes."""


class OptimizationProfile(Section, frozen=True):
    """[least, best, most] of each size."""

    batch: Three
    sequence: Three | UnsetType = UNSET
    """Texts need both."""


class TensorRT(Section, frozen=True):
    """How TensorRT's engines are built."""

    profiles: Literal["auto"] | Annotated[tuple[OptimizationProfile, ...], Meta(min_length=1)] = (
        "auto"
    )
    """Optimization profiles, [least, best, most] of batch and sequence each; auto is one for each
    of shapes, for it alone, and one for every other request of up to the largest. ONNX Runtime's
    TensorRT provider has one profile, which covers all of these."""
    attention_operator: bool = False
    """Attention as one operator, ONNX's Attention of opset 23, where its form is known."""
    optimization_level: Annotated[int, Meta(ge=0, le=5)] = 3
    """Of the builder; higher takes longer to build and may run faster."""
    version_compatible: bool = False
    """Plans that later versions of TensorRT load too."""
    hardware_compatibility: Annotated[
        str, one_of("none", "ampere_plus", "same_compute_capability")
    ] = "none"
    """Plans for other GPUs too; none is fastest."""


class Calibration(Section, frozen=True):
    """How the ranges of INT8 are found; one variant for each method and sample count."""

    methods: Annotated[
        tuple[Annotated[str, one_of(*(name for name in METHODS if name != QAT))], ...], DISTINCT
    ] = ("minmax", "nncf")
    """nncf is OpenVINO's own; random is minmax on uniform random tokens, without calibration
    data."""
    samples: Counts = (512,)
    """Examples that the ranges are found with."""
    pool: Count = 1024
    """Examples set apart for calibration, of which the samples are the first; int8-auto is judged
    on all of them."""
    percentile: Annotated[float, Meta(gt=50, le=100)] = 99.99
    """Of the values of a tensor so many percent lie within the range of percentile."""
    reduce_range: Literal["auto"] | bool = "auto"
    """Keep weights of int8 (of AOTInductor its activations) within 7 bits, for CPUs whose sums
    saturate; auto asks this machine, or isa of one of hosts, and is false where neither tells."""


class Repair(Section, frozen=True):
    """Another way to quantize the ONNX file."""

    smoothquant: Share | None = None
    """Strength at which the spread of activation channels is moved into the weights."""
    bias_correction: bool = False
    """Add to biases what rounding the weights took from the mean output."""
    activations: Annotated[str | None, one_of("symmetric", "asymmetric", None)] = None
    """Of ONNX Runtime; null is the scheme's own, asymmetric. TensorRT's are symmetric."""
    outputs: bool = False
    """Quantize the outputs of these operators too."""
    attention: bool = False
    """Quantize both products of attention too, query x key and probabilities x value; for
    TensorRT's schemes alone, so such a repair is no variant on a CPU. Not run on a GPU yet."""
    float_: tuple[Word, ...] = msgspec.field(name="float", default=())
    """Names of operators that stay in float, with * and ?."""


class Goal(Section, frozen=True):
    """What the recommendation is for ([goal](goal.md)).

    null is the fastest variant at each shape that keeps accuracy_budget_points.
    """

    minimize: Annotated[str, one_of("latency", "cost", "memory", "energy")]
    """cost is machine time per inference, or money where prices has the host."""
    shape: Shape | None = None
    """One of shapes; null is each of them, of cost the cheapest."""
    traffic: Annotated[str | None, one_of("single_stream", "offline", "server", None)] = None
    """In the place of a shape, one of traffic.scenarios."""
    p99_ms: Positive | None = None
    """Bound of p99, at that shape or under that traffic; variants whose p50 is within it get the
    calls that a p99 takes."""
    memory_mb: Positive | None = None
    """Bound of the process's resident memory, 10^6 bytes."""
    accuracy_points: Points | None = None
    """In the place of accuracy_budget_points for this decision."""


class Latency(Section, frozen=True):
    """How each shape is timed, a variant and its baseline in alternating blocks."""

    pairs: Annotated[int, Meta(ge=2)] = 30
    """So many pairs of blocks, unless comparison_seconds are over before; 12 in any case."""
    loads: Annotated[int, one_of(1, 2)] = 1
    """How often both are loaded: loads of the same engine differ by about a percent, which two
    average out and one does not."""
    min_seconds: Positive = 0.75
    """Of so long, each of the two, a block takes its share."""
    min_calls: Count = 100
    """So many calls of the variant, unless comparison_seconds are over before."""
    width: Positive = 0.08
    """After these pairs and calls a shape goes on until the 95 % interval of its speed-up is this
    narrow, relative to it."""
    comparison_seconds: NotNegative = 4.0
    """A shape takes at most so long, warm-up included, whatever its interval is."""
    quiet_seconds: Annotated[int, Meta(ge=0)] = 120
    """So long a run may wait for other programs to leave the processors alone, and measure again
    what they disturbed."""
    accept_disturbed: bool = False
    """Give numbers also where too few pairs of blocks were undisturbed, and mark them
    provisional."""
    calls: Annotated[int, Meta(ge=2)] | None = None
    """Exactly so many calls in the place of all of these, for a fixed protocol."""
    warmup_seconds: NotNegative = 0.5
    """Warm-up until the times are stable, at most so long."""
    warmup_calls: Annotated[int, Meta(ge=0)] | None = None
    """Exactly so many calls of warm-up in the place of that."""
    max_seconds: Positive = 120
    """A variant that takes longer for the calls of one shape is failed as too slow."""


class Decision(Section, frozen=True):
    """How the finalists of a model on a device are raced for what to deploy."""

    seconds: Positive = 60
    """Of a model on a device, loads included; waiting for a quiet machine comes on top."""
    equal_within: Annotated[float, Meta(gt=0, le=0.5)] = 0.02
    """Two variants whose times surely differ by no more than this share are equal."""


class Profile(Section, frozen=True):
    """Variants whose operators are timed too, to see what bounds their calls."""

    variants: Literal["auto"] | Annotated[tuple[str, ...], UNIQUE] = "auto"
    """Their names; auto is each on a CPU of which operators are timed, [] is none."""


class Training(Section, frozen=True):
    """Measurement of the training of each model that has a recipe; its weights are thrown away."""

    epochs: Annotated[int, Meta(ge=0)] = 0
    """So many, in the place of the recipe's; the first is told apart. 0 measures nothing."""
    seeds: Annotated[tuple[Seed, ...], DISTINCT] = (0, 1, 2)
    """One training each, in the place of the recipe's seed."""


class Config(Section, frozen=True):
    """Every key and its default; only models must be given."""

    models: Annotated[
        dict[str, Model],
        Meta(min_length=1),
        named(
            "^[a-z0-9][a-z0-9_.-]{0,99}$", "a word of at most 100 small letters, digits, _, . and -"
        ),
    ]
    """The models, by name."""
    devices: Literal["auto"] | Devices = "auto"
    """auto (every device; what is not there is reported as unavailable) or a list, on which every
    precision that exists there is planned, whether the device is there or not."""
    host: Annotated[
        str,
        Meta(
            pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$",
            title=("auto (this machine's fingerprint) or, on a cluster, the node type of all jobs"),
        ),
    ] = "auto"
    """The machine whose times are measured."""
    hosts: Annotated[
        dict[str, Node],
        named("^[A-Za-z0-9][A-Za-z0-9_]{0,29}$", "a name of at most 30 letters, digits and _"),
    ] = {}
    """Kinds of nodes of a cluster, by name: each variant is built and measured on each of them that
    has its device, and compared with the baseline there. For executors that send jobs to nodes
    (profiles/slurm), in the place of host and devices."""
    emulated: bool = False
    """Plan also precisions whose instructions the processor lacks, else reported as unavailable;
    fp32 then stands in for an engine's own precisions in float. For nodes whose instructions are
    not known (host is not auto, or one of hosts has no isa) every precision is planned."""
    threads: Literal["auto"] | Count = "auto"
    """Intra-op threads of training, builds and measurements; auto = physical cores."""
    shapes: Annotated[tuple[Shape, ...], DISTINCT] = (
        Shape(batch=1, sequence=64),
        Shape(batch=1, sequence=128),
        Shape(batch=16, sequence=128),
    )
    """The shapes whose latency is measured; each model takes those of its kind."""
    buckets: Literal["auto"] | Buckets | None = "auto"
    """The shapes for which OpenVINO and TVM compile a static program each; a request is padded up
    to the nearest. auto is the batches of shapes with powers of two from 32 tokens to the longest
    measured sequence, for images the batches only; null is one OpenVINO program for any shape."""
    engines: Engines = Engines(
        pytorch=("fp32", "bf16"),
        onnxruntime=("fp32", "int8", "int8-auto", "int8-dynamic"),
        openvino=("bf16", "int8", "int8-bf16"),
    )
    """Precisions to build for each engine."""
    repairs: Annotated[
        dict[str, Repair],
        named(
            "^(?!auto$)[a-z][a-z0-9_]{0,49}$",
            "a word of at most 50 small letters, digits and _, and not auto",
        ),
    ] = {}
    """Other ways to quantize the ONNX file, by a name that ends the variant's name; one more
    variant for each of them, method and sample count."""
    search_smoothquant: Share | None = 0.8
    """Strength of SmoothQuant in int8-auto, where plain int8 loses too much; null for none."""
    sensitivity_samples: Count = 128
    """Calibration examples on which each operator alone is tried in int8, where SmoothQuant loses
    too much."""
    accuracy_budget_points: Points = 1.0
    """How many points of accuracy a variant may lose."""
    prices: Annotated[
        dict[str, Positive],
        named(
            r"^(\*|[A-Za-z0-9][A-Za-z0-9_.-]*)$",
            'the fingerprint of a host, twelve hex digits, the name of one (host), or "*"',
        ),
    ] = {}
    """Of an hour of a host, in any currency, by its key under `hosts` in reports/summary.json,
    which is its fingerprint or its name (host); "*" is every other host. Without one there is no
    cost in money."""
    accuracy_seconds: Positive = 900
    """Accuracy is judged on the first examples that are answered in this time."""
    remeasure: Annotated[str | None, one_of("disturbed", None)] = None
    """disturbed has the run measure again what other load has disturbed: latencies, races,
    families, traffic, throughputs, pauses, causes and trainings; null is none."""
    explain: Annotated[str | None, one_of("verify", None)] = None
    """verify builds each profiled variant again without each cause of its time that a setting
    removes, and puts the measured saving beside the predicted one; null does not."""
    graphs: Annotated[
        tuple[Annotated[str, one_of("exported", "simplified", "quantized")], ...], UNIQUE
    ] = ("simplified", "quantized")
    """ONNX files that the report shows, of those that the run makes. quantized is one of each
    scheme and repair, each that int8-auto mixed, and exported of a model that is quantized
    already."""
    strict: bool = False
    """End with an error, after the report is written, when any variant failed."""
    retry_failed: Annotated[bool | str, one_of(True, False, "transient")] = False
    """Try failed variants again; with `transient` only those that another attempt may mend: out of
    memory or time, killed."""
    cuda: Cuda = Cuda()
    onnxruntime: OnnxRuntime = OnnxRuntime()
    openvino: OpenVino = OpenVino()
    tensorrt: TensorRT = TensorRT()
    calibration: Calibration = Calibration()
    goal: Goal | None = None
    latency: Latency = Latency()
    decision: Decision = Decision()
    profile: Profile = Profile()
    training: Training = Training()
    """See below."""

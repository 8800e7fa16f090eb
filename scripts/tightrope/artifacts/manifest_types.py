"""Types of the files between steps: manifests, and what int8 is decided by."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta


class File(TypedDict):
    """A file beside a manifest."""

    sha256: str
    size_bytes: int


class Manifest(TypedDict):
    """What every manifest holds: the other files of its folder, by their relative path."""

    schema: int
    files: dict[str, File]


class Part(TypedDict):
    """A part of the examples: its file beside data.json, and how many examples it has."""

    file: str
    samples: int


class LabelsManifest(Manifest):
    """What data.json and the manifests of splits have in common: source, labels, rows left out."""

    task: str
    source: str
    revision: NotRequired[str | None]
    labels: list[str] | None
    left_out: NotRequired[dict[str, dict[str, int]] | None]


class DataManifest(LabelsManifest):
    """data.json: distinct labelled examples, in the order in which splits take them.

    `parts` are train and evaluation if the source has both, else a single pool; none for random
    inputs. `classes` are the indices of the labels that occur in the source.
    """

    seed: int
    classes: list[int]
    parts: dict[str, Part]


class SplitManifest(LabelsManifest):
    """splits/{split}.json: the rows of a part of data.json that are one split, in their order.

    `file` is relative to the manifest; without it the rows are the seeds of random inputs. `rows`
    are the arguments of `range`.
    """

    split: str
    file: str | None
    rows: tuple[int, int, int]
    samples: int


class SourceManifest(Manifest):
    """source/checkpoint.json: a checkpoint as it came from its source."""

    task: str
    source: str
    revision: str | None


class CheckpointManifest(Manifest):
    """checkpoint/checkpoint.json: the classifier that is exported and built.

    `model` is the name of the model that it was made for, `height` and `width` are those of a model
    of images, `inputs` maps the pipeline's input names to those of an ONNX file from outside, whose
    output `output_order[i]` is that of label i. `reference` is for how many texts it was compared
    with the model that was brought, see `check_reference`, `matched` how its outputs have got their
    labels. `qat` is the `scheme` of a training for int8, and its `ranges`: [low, high] of the input
    by module, and of the output in `outputs` where the training quantized these too.
    """

    task: str
    source: str
    labels: list[str]
    parameters: int
    architecture: str | None
    max_sequence: int | None
    recipe: dict[str, Any] | None
    training: dict[str, Any] | None
    reference: NotRequired[int | None]
    matched: NotRequired[str | None]
    model: NotRequired[str]
    activation: NotRequired[str | None]
    prune: NotRequired[dict[str, Any]]
    distill: NotRequired[dict[str, Any] | None]
    qat: NotRequired[dict[str, Any] | None]
    vocabulary: NotRequired[int]
    inputs: NotRequired[dict[str, str]]
    output_order: NotRequired[list[int] | None]
    height: NotRequired[int]
    width: NotRequired[int]


class TeacherManifest(Manifest):
    """teacher/…/outputs.json: what a teacher says of the examples that students are trained on.

    `rows` examples are those of the train split, then the `unlabelled` texts. `logits.npy` is
    float32 [rows, classes], `states.npy`, if `hidden` is not None, float16 [tokens of all rows,
    hidden], `tokens.npy` int64 [rows], the tokens of each row. `inputs_sha256` is of the encoded
    texts, None for images, `sequence` where they were cut; the teacher's tokenizer is beside it.
    """

    teacher: str
    teacher_sha256: str
    data_sha256: str
    labels: list[str]
    rows: int
    unlabelled: int
    sequence: int | None
    hidden: int | None
    vocabulary: int | None
    inputs_sha256: str | None


class EngineManifest(Manifest):
    """engine.json: a built engine, or with status `failed` the reason why there is none.

    `sources` are the sha256 of the files that it was built from, `checkpoint` is the identity of
    the one that they were made from (`manifest.identity`), None where it is not known. `executed`
    counts the operators by type and precision as the runtime reports them, `executed_unknown` has
    types of products that nobody knows, `inputs` are name, dtype and axes of each, `built_on` is
    where an engine of TensorRT runs, `provider` the operators of ONNX Runtime by the provider that
    ran them, `graphs_refused` why an engine on a GPU runs without CUDA graphs though it was to have
    them.
    """

    status: Literal["ok", "failed"]
    variant: str
    precision: str
    options: dict[str, Any]
    sources: dict[str, str]
    checkpoint: str | None
    libraries: dict[str, str | None]
    build_s: float
    reason: NotRequired[str]
    transient: NotRequired[bool]
    format: NotRequired[str]
    executed: NotRequired[dict[str, dict[str, int]]]
    executed_unknown: NotRequired[list[str]]
    inputs: NotRequired[list[list[Any]]]
    max_sequence: NotRequired[int | None]
    built_on: NotRequired[dict[str, Any]]
    provider: NotRequired[dict[str, int]]
    graphs_refused: NotRequired[str | None]
    build_peak_rss_bytes: NotRequired[int]


Size = Annotated[int, Meta(ge=1)]


class OperatorEffect(TypedDict):
    """Effect on the logits of an operator alone in int8."""

    agreement: float
    logit_error: float | None
    kl: float
    sqnr_db: float | None


class Sensitivities(TypedDict):
    """The effect of each operator on so many samples."""

    samples: int
    operators: dict[str, OperatorEffect]


class OperatorCost(TypedDict):
    """Seconds of an operator alone at one shape."""

    batch: Size
    sequence: NotRequired[Size]
    tokens: NotRequired[Size]
    height: NotRequired[Size]
    width: NotRequired[Size]
    float_s: float
    int8_s: float


class Costs(TypedDict):
    """What `int8.costs` writes: the times of each operator at each shape."""

    host: NotRequired[str | None]
    operators: dict[str, list[OperatorCost]]


class Trial(TypedDict):
    """A trial of a search: SmoothQuant, operators in float, the change of accuracy with them."""

    smoothquant: float | None
    in_float: list[str]
    delta: float
    delta_low: float
    delta_high: float
    flips: int
    verdict: Literal["kept", "dropped", "undecided"]
    seconds: float


class InFloat(TypedDict):
    """What a search found: the operators that stay in float, and the strength of SmoothQuant."""

    in_float: list[str]
    smoothquant: float | None


class Found(InFloat):
    """What `int8.search` writes, with how it was found."""

    operators: int
    sensitivity: Sensitivities | None
    samples: int
    budget_points: float
    seconds: float
    trials: list[Trial]

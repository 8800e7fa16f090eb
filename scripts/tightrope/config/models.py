"""The keys of a model: where it and its data come from, what is changed, how it is trained."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tightrope.config.types import (
    DISTINCT,
    UNIQUE,
    Count,
    NotNegative,
    Positive,
    Section,
    Seed,
    Shape,
    Share,
    Size,
    Word,
    one_of,
)
from tightrope.variants import SCHEMES

Length = Annotated[int, Meta(ge=2)]
Place = Annotated[int, Meta(ge=0)]
# an error about a text says its form, the title
Checkpoint = Annotated[
    str,
    Meta(
        pattern="^(hub:[^@]+@.+|path:.+|package:.+|scratch:.+|onnx:.+|model:.+)$",
        title="hub:owner/name@revision, path:folder, package:module/folder, scratch:architecture "
        "or onnx:file.onnx",
    ),
]
Data = Annotated[
    str,
    Meta(
        pattern="^(hub:[^@]+@.+|files:.+|docstrings:.+|digits|random)$",
        title="hub:owner/name[/configuration]@revision, files:pattern, docstrings:package,... or "
        "random; of images also digits",
    ),
]
Texts = Annotated[
    str, Meta(pattern="^(files|docstrings):.+$", title="files:pattern or docstrings:package,...")
]
Speedup = Annotated[
    str,
    Meta(
        pattern="^[0-9]+([.][0-9]+)?x$",
        title="a speed-up over the model that it starts `from`, such as 2x",
    ),
]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", title="64 hex digits in small letters")]


class Prune(Section, frozen=True):
    """What of a model is kept, before fine-tuning where there is a recipe.

    Sizes, or those that meet a target by latency measured on this host and by importance on the
    train split ([pruning](pruning.md)).
    """

    layers: Count | Annotated[tuple[Place, ...], DISTINCT] | None = None
    """Of an encoder how many, at even distances with the last one, or which, counted from 0; null
    is all."""
    intermediate: Count | None = None
    """Neurons of each feed-forward layer, those of the largest weights; of a ConvNeXt those of a
    block of the first stage, and the others in proportion; null is all."""
    heads: Literal["auto"] | Count | None = None
    """Attention heads of each layer of an encoder, those of the largest weights; null is all. With
    a target, auto lets it choose them too: transformers alone does not load such a checkpoint."""
    target: Speedup | None = None
    """The sizes are chosen for this speed-up."""
    parameters: Count | None = None
    """In the place of target, at most so many weights in all."""
    at: Shape | None = None
    """The shape of the target, which need not be one of shapes; null is the first of these."""
    engine: Annotated[
        str | None,
        one_of(
            *("onnxruntime-fp32", "openvino-fp32", "openvino-bf16", "pytorch-fp32"),
            *("pytorch-bf16", None),
        ),
    ] = None
    """The engine and precision that measure the target, on a CPU and in float, configured or not;
    null is onnxruntime-fp32. Other precisions of the same model are not measured."""


class Distill(Section, frozen=True):
    """Another of models, from whose outputs for the training examples this one learns.

    `data` and the like are those of that model unless they are given or there is a `from`.
    """

    from_: Word = msgspec.field(name="from")
    """The teacher."""
    temperature: Positive = 2.0
    """Of the softmax of both, in the distance of their logits."""
    labels: Share = 0.5
    """Share of the labels in the loss; the rest is the distance of the logits."""
    hidden: NotNegative = 1.0
    """Weight of the distance of the last layer's states, of every token or place of an image; 0
    compares logits alone, for a teacher with other tokens."""
    unlabelled: Texts | None = None
    """Source of more texts, which need no label; those that occur in the data are left out."""


class Columns(Section, frozen=True):
    """The columns of tables."""

    text: str = "text"
    image: str = "image"
    label: str = "label"
    """The name of the column that holds it."""


class Splits(Section, frozen=True):
    """Examples for training and evaluation; null takes all that there are."""

    train: Count | None = None
    """All are those that calibration and evaluation leave."""
    evaluation: Count | None = None
    """All are a fifth of data without evaluation examples of its own."""


class Inputs(Section, frozen=True):
    """Of an ONNX file, its own names of the inputs; segments become zeros."""

    input_ids: str = "input_ids"
    attention_mask: str = "attention_mask"
    token_type_ids: str = "token_type_ids"
    pixel_values: str = "pixel_values"
    """The file's name of each."""


class Recipe(Section, frozen=True):
    """The fine-tuning recipe; without one the checkpoint is only converted."""

    epochs: Positive = 1
    """Passes over the train split."""
    batch: Size = 32
    """Examples of a step."""
    learning_rate: Positive = 2.0e-4
    """The highest."""
    weight_decay: NotNegative = 0.01
    """Of AdamW."""
    warmup: Share = 0.1
    """Share of the steps in which the learning rate rises to the highest."""
    sequence: Length = 64
    """Tokens at which texts are cut in training."""
    frozen: tuple[Word, ...] = ()
    """Modules of the model whose weights stay as they are (bert.embeddings, bert.encoder.layer.0);
    layers below the first trained one cost a third of one."""
    sparsity: Annotated[float, Meta(gt=0, lt=1)] | None = None
    """The share of the weights of each linear layer that becomes zero, those of smallest magnitude;
    null is none. The file packs smaller; no engine was measured to be faster."""
    compile: bool = False
    """With torch.compile."""
    amp: Annotated[str, one_of("auto", "off", "bf16", "fp16")] = "auto"
    """Mixed precision; fp16 scales its gradients. auto is bf16 where the device multiplies in it,
    else off. off is float32, without TF32."""
    channels_last: bool = False
    """Memory layout of images."""
    augmentation: Annotated[str, one_of("off", "flip_crop")] = "off"
    """Of images; flip_crop moves each by up to an eighth and mirrors one in two."""
    device: Annotated[str, one_of("auto", "cpu", "cuda")] = "auto"
    """auto is the GPU where one is there or nothing else is planned, else the CPU."""
    seed: Seed | None = None
    """Of a new head and of the order of the examples; null is the model's."""
    validate: bool = False
    """After each epoch judge accuracy on a tenth of the train split, which is then not trained
    on."""
    out_of_memory: Annotated[str, one_of("stop", "halve")] = "stop"
    """A batch that does not fit ends the training, or is learned from in halves, whose gradients
    are added; with the whole batch's schedule."""


class QuantizationAware(Recipe, frozen=True):
    """Quantization-aware training, in the place of train.

    Fine-tuning with the values that scheme rounds to, which also learns the range of each
    activation. The weights stay in float, and calibration by `qat` takes the ranges, in the place
    of calibration.methods.
    """

    scheme: Annotated[str, one_of(*SCHEMES)] = "u8s8"
    """u8s8 is that of CPUs, u8s7 of those whose sums saturate, s8s8 and e4m3 those of TensorRT.
    Files of the other schemes take the same ranges."""
    outputs: bool | UnsetType = UNSET
    """Train also for repairs with `outputs: true`, whose files round outputs of these operators and
    skip connections too; without the key it does not."""
    learning_rate: Positive = 5.0e-5
    """The highest."""
    compile: Annotated[bool, one_of(False)] = False
    """Values that are rounded are not compiled yet."""
    amp: Annotated[str, one_of("auto", "off", "bf16", "fp16")] = "off"
    """As in train."""


class Model(Section, frozen=True):
    """A model by its name, with its data."""

    checkpoint: Checkpoint
    """An ONNX file has its tokenizer.json or preprocessor_config.json beside it. model:name is what
    `from` stands for."""
    data: Data
    """Labelled examples; digits are scikit-learn's."""
    task: Annotated[str, one_of("text-classification", "image-classification")] = (
        "text-classification"
    )
    """What its inputs are."""
    from_: Word | None = msgspec.field(name="from", default=None)
    """In the place of checkpoint, another of models: its trained classifier. task, data, images,
    columns, splits, max_sequence and seed are those of that model unless they are given."""
    checkpoint_sha256: Sha256 | None = None
    """Expected sha256 of model.safetensors or of the ONNX file."""
    images: Word | None = None
    """The folder or archive (.zip, .tar, .tar.gz), beside the table, that holds the images which a
    table of images names; null is the folder of the table. Of a folder of images, the folder that
    links in it may lead to, besides itself and the folder of the run."""
    max_sequence: Length = 128
    """Tokens at which texts are cut, when accuracy is judged and for calibration."""
    quantized: bool = False
    """The ONNX file is quantized already, by Q/DQ (QuantizeLinear and DequantizeLinear), and runs
    as it is: each precision of `engines` that needs calibration becomes one variant `given`."""
    labels: Annotated[tuple[str, ...], Meta(min_length=2), UNIQUE] | None = None
    """Names of the model's outputs, in their order, each a label of the data: of a model whose file
    does not say them. null takes those in config.json; an ONNX file's outputs are then in the order
    of the data's labels, which are sorted. Put yes, no, on, off and null in quotes."""
    seed: Seed = 0
    """Of the splits, of a new head and of weights that are drawn."""
    activation: Annotated[
        str | None, one_of("gelu", "gelu_tanh", "hardswish", "relu", "silu", "fast_swish", None)
    ] = None
    """Takes the place of the checkpoint's own activation function, before fine-tuning where there
    is a recipe; null leaves it."""
    columns: Columns = Columns()
    splits: Splits = Splits()
    inputs: Inputs = Inputs()
    prune: Prune = Prune()
    distill: Distill | None = None
    train: Recipe | None = None
    qat: QuantizationAware | None = None
    """See below."""

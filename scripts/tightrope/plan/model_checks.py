"""Check the configured models: their sources, recipes, kinds of inputs and trainings."""

from collections import Counter
from functools import partial
from pathlib import Path

from tightrope.checkpoint import source as checkpoint_source
from tightrope.checkpoint.source import unusable_head
from tightrope.data import source as data_sources
from tightrope.data.splits import role_of
from tightrope.errors import ConfigError, TightropeError, nearest
from tightrope.plan.hosts import Document
from tightrope.plan.job_inputs import data_source
from tightrope.plan.shapes import OF_IMAGES, OF_TEXTS, TOKENS, is_of_images, shapes_of
from tightrope.signature import BATCH, SEQUENCE, TEXT
from tightrope.sources.tables import TABLES, column_names, table_suffix
from tightrope.variants import is_onnx

# characters of a path in an error
MOST_SHOWN = 200
# larger sources of texts are read by the job alone: these take a few tenths of a second
LARGEST_BYTES = 4_000_000
COMPRESSION = 10
MOST_NAMED = 12


def check_sources(config: Document) -> None:
    """Local files and folders that the models name must exist."""
    for name, model in config["models"].items():
        task = model["task"]
        for key, check in (
            ("checkpoint", partial(checkpoint_source.local_files, model["checkpoint"], task=task)),
            ("data", partial(data_sources.local_files, **data_source(config, name))),
        ):
            place = f"config: models.{name}.{key} = {model[key][:MOST_SHOWN]}"
            try:
                check()
            except TightropeError as error:
                reason = str(error).removeprefix(f"{model[key]}: ")
                raise ConfigError(f"{place}: {reason}") from None
            except (OSError, ValueError) as error:  # a name that is too long, no permission
                why = getattr(error, "strerror", None) or error
                raise ConfigError(f"{place}: cannot be read ({why})") from error


def check_checkpoints(config: Document) -> None:
    """A checkpoint must have what its model says of it.

    One that is not trained needs a single-label classification head, the outputs of a local one are
    as many as their names, and only an ONNX file can be quantized already.
    """
    for name, model in config["models"].items():
        if model["train"] is None and (reason := unusable_head(model["checkpoint"])):
            raise ConfigError(f"config: models.{name}.checkpoint = {model['checkpoint']}: {reason}")
        outputs = checkpoint_source.known_outputs(model["checkpoint"]) if model["labels"] else None
        if outputs is not None and outputs != len(model["labels"]):
            raise ConfigError(
                f"config: models.{name}.labels: {len(model['labels'])} names, "
                f"{model['checkpoint']} has {outputs} outputs; list one name for each output, in "
                "the order of the outputs"
            )
        if model["quantized"] and not is_onnx(model["checkpoint"]):
            raise ConfigError(
                f"config: models.{name}.quantized: only an ONNX file (checkpoint: onnx:FILE) "
                f"can be quantized already, not {model['checkpoint']}; remove quantized"
            )


def check_recipes(config: Document) -> None:
    """A model given as an ONNX file cannot be trained, pruned, nor get another activation.

    A model is trained with float or with quantized values, one after the other as two models.
    Outputs are quantized in training as in the files of ONNX Runtime, which has no E4M3.
    """
    changes = {"train": "be trained", "activation": "get another activation", "prune": "be pruned"}
    changes |= {"qat": "be trained"}
    for name, model in config["models"].items():
        for key, done in changes.items():
            asked = model[key]
            if isinstance(asked, dict):  # sizes that are all null ask for nothing
                asked = any(one is not None for one in asked.values())
            if is_onnx(model["checkpoint"]) and asked:
                raise ConfigError(
                    f"config: models.{name}.{key}: the model is an ONNX file and cannot {done}; "
                    f"remove {key}, or start from its checkpoint"
                )
        qat = model["qat"] or {"sparsity": None, "scheme": None}
        if model["train"] and model["qat"]:
            raise ConfigError(
                f"config: models.{name}.qat: the model has train too; move qat to another model, "
                f"which starts from: {name}"
            )
        if qat["sparsity"]:
            raise ConfigError(
                f"config: models.{name}.qat.sparsity: rounding moves the zeros; remove it, or say "
                "it in train of another model"
            )
        if qat.get("outputs") and qat["scheme"] == "e4m3":
            raise ConfigError(
                f"config: models.{name}.qat.outputs: e4m3 is a scheme of TensorRT's files, and "
                "outputs are trained for those of ONNX Runtime; take s8s8, or leave outputs out"
            )


def check_kinds(config: Document) -> None:
    """A shape is for texts or for images, and each model has shapes and sizes of its kind."""
    for number, shape in enumerate(config["shapes"], start=1):
        if set(shape) - {BATCH} not in (set(OF_TEXTS), {*OF_TEXTS, TOKENS}, set(OF_IMAGES)):
            raise ConfigError(
                f"config: shapes (entry {number}) = {shape}: besides batch a shape has sequence, "
                "and tokens if some of it is padding, for texts, or height and width, for images"
            )
        if shape.get(TOKENS, 0) > shape.get(SEQUENCE, 0):
            raise ConfigError(
                f"config: shapes (entry {number}).tokens = {shape[TOKENS]}: more than its sequence "
                f"of {shape[SEQUENCE]}; lower it"
            )
    for name, model in config["models"].items():
        if not shapes_of(config, name):
            sizes = OF_IMAGES if is_of_images(config, name) else OF_TEXTS
            raise ConfigError(
                f"config: shapes: none with {' and '.join(sizes)}, as models.{name} of task = "
                f"{model['task']} takes; add one"
            )
    texts = [name for name in config["models"] if not is_of_images(config, name)]
    profiles = config["tensorrt"]["profiles"]
    lists = [("buckets", config["buckets"])] if isinstance(config["buckets"], dict) else []
    lists += [("tensorrt.profiles", one) for one in profiles if profiles != "auto"]
    for key, listed in lists:
        if texts and SEQUENCE not in listed:
            raise ConfigError(f"config: {key}: the key sequence is missing, for models.{texts[0]}")


def check_tables(config: Document) -> None:
    """Local tables must have the configured columns; small ones must be usable."""
    for name, model in config["models"].items():
        if not model["data"].startswith("files:"):
            continue
        tables = tables_of(config, name)
        content = "text" if model["task"] == TEXT else "image"
        columns = {key: model["columns"][key] for key in (content, "label")}
        try:
            for file in tables:
                check_columns(name, file, columns)
            if tables and model["task"] == TEXT and sum(map(size, tables)) <= LARGEST_BYTES:
                check_examples(name, model["data"], columns)
        except ConfigError:
            raise
        except TightropeError as error:
            raise ConfigError(f"config: models.{name}.data: {error}") from None


def tables_of(config: Document, name: str) -> list[Path]:
    """Return the tables of a model's data; of texts without a test file that is not used."""
    files = map(Path, data_sources.local_files(**data_source(config, name)))
    tables = [file for file in files if table_suffix(file) in TABLES]
    unused = {"test"} if "evaluation" in {role_of(file.name) for file in tables} else set()
    if config["models"][name]["task"] != TEXT:
        return tables
    return [file for file in tables if role_of(file.name) not in unused]


def size(file: Path) -> int:
    """Return about how many bytes of text a table holds."""
    compressed = file.suffix in (".gz", ".parquet")
    return file.stat().st_size * (COMPRESSION if compressed else 1)


def check_columns(name: str, file: Path, columns: dict[str, str]) -> None:
    """Raise ConfigError for a column that the table does not have."""
    names = column_names(file, whole=size(file) <= LARGEST_BYTES)
    if names is None:
        return
    for key, column in columns.items():
        if column not in names:
            guess = nearest(column, names)
            more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
            raise ConfigError(
                f"config: models.{name}.columns.{key} = {column}: {file} has no such column"
                f"{f'{guess} It' if guess else '; it'} has {', '.join(names[:MOST_NAMED])}{more}: "
                f"set columns.{key} to one of these"
            )


def check_examples(name: str, source: str, columns: dict[str, str]) -> None:
    """Raise TightropeError for what the job would refuse, and for a label with one example."""
    kind, location = data_sources.parse_source(source, task=TEXT)
    material = data_sources.load_kind(kind, task=TEXT).read(source, location, columns=columns)
    counts = Counter(label for _, label in (*material.train, *(material.evaluation or ())))
    rare = [material.labels[label] for label, count in sorted(counts.items()) if count == 1]
    if not rare:
        return
    said, them = f"label {rare[0]!r} has one example", "it"
    if len(rare) > 1:
        said, them = f"labels {rare[0]!r} and {len(rare) - 1} more have one example each", "them"
    raise ConfigError(
        f"config: models.{name}.data = {source}: {said}, which cannot be in all splits; bring more "
        f"examples of {them}, or take {them} out"
    )

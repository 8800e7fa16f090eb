"""What the configuration may say, what it is filled in with, and the line that refuses it."""

import copy
import json
import math
import os
import random
import re
import tarfile
from pathlib import Path
from typing import Any

import hosts
import jsonschema
import pytest
import yaml
from configured import CONFIG, MODEL, configured, refused, with_model
from tightrope.config.read import GONE
from tightrope.config.schema import schema_of_keys
from tightrope.errors import ConfigError
from tightrope.machine.cores import cpu_quota
from tightrope.model.activations import ACTIVATIONS
from tightrope.plan.config_checks import checked
from tightrope.plan.variants import configured as variants_of
from tightrope.studies.table import STUDIES

DOCUMENT = schema_of_keys({name: study.settings for name, study in STUDIES.items()})
EXPERIMENTS = CONFIG.parent / "experiments"


def properties(schema: dict[str, Any], path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Dotted name and schema of every key at every level."""
    found = []
    for name, one in schema.get("properties", {}).items():
        found += [(f"{path}{name}", one), *properties(one, f"{path}{name}.")]
        found += properties(one.get("items", {}), f"{path}{name}[].")
        others = one.get("additionalProperties")
        if isinstance(others, dict):
            found += properties(others, f"{path}{name}.NAME.")
        for option in one.get("anyOf", []):
            found += [(f"{path}{name}|", option), *properties(option, f"{path}{name}.")]
    return found


def test_the_schema_is_a_schema_that_allows_no_unknown_key_at_any_level() -> None:
    jsonschema.Draft202012Validator.check_schema(DOCUMENT)
    levels = [("", DOCUMENT), *properties(DOCUMENT)]
    levels += [(f"{name}[]", one["items"]) for name, one in levels if "items" in one]
    levels += [
        (f"{name}.NAME", one["additionalProperties"])
        for name, one in levels
        if isinstance(one.get("additionalProperties"), dict)
    ]
    objects = [(name, one) for name, one in levels if "properties" in one]
    assert {"buckets|", "onnxruntime", "openvino", "tensorrt"} <= {name for name, _ in objects}
    assert not [name for name, one in objects if one.get("additionalProperties") is not False]


def test_every_key_has_a_default_which_what_is_given_beats() -> None:
    filled = configured()
    assert checked(filled) == filled
    keys = DOCUMENT["properties"]
    assert set(filled) == set(keys)
    model = keys["models"]["additionalProperties"]
    assert set(filled["models"]["tiny"]) == set(model["properties"])
    for name in ("calibration", "latency", "onnxruntime", "openvino", "throughput", "traffic"):
        assert set(filled[name]) == set(keys[name]["properties"]), name
    assert (filled["accuracy_budget_points"], filled["buckets"]) == (1.0, "auto")
    assert filled["calibration"]["methods"] == ["minmax", "nncf"]
    # what is given is left as it was
    given = {**with_model(train={"epochs": 3}), "latency": {"min_calls": 5}}
    before = copy.deepcopy(given)
    filled = checked(given)
    assert (filled["latency"]["min_calls"], filled["latency"]["pairs"]) == (5, 30)
    recipe = filled["models"]["tiny"]["train"]
    assert (recipe["epochs"], recipe["amp"]) == (3, "auto")
    filled["models"]["tiny"]["splits"]["train"] = 5
    assert given == before
    assert configured()["models"]["tiny"]["splits"]["train"] is None


def test_the_activations_are_those_that_there_are() -> None:
    model = DOCUMENT["properties"]["models"]["additionalProperties"]["properties"]
    assert model["activation"]["enum"] == [*ACTIVATIONS, None]


def test_every_configuration_of_the_project_is_valid(tmp_path, monkeypatch) -> None:
    # what the studies of images read is not in the project
    (tmp_path / "tiny_imagenet_20c").mkdir()
    (tmp_path / "tiny_imagenet_20c/labels.tsv").write_text("file\tname\n")
    tarfile.open(tmp_path / "tiny_imagenet_20c/images.tar.gz", "w:gz").close()
    monkeypatch.chdir(tmp_path)
    files = [CONFIG, *EXPERIMENTS.glob("*.yaml")]
    assert len(files) > 10
    for file in files:
        filled = checked(yaml.safe_load(file.read_text()))
        assert all(variants_of(filled, model, hosts.AMX) for model in filled["models"])
    study = yaml.safe_load((EXPERIMENTS / "int8.yaml").read_text())
    for file in (EXPERIMENTS / "overlays").glob("*.yaml"):
        laid = yaml.safe_load(file.read_text())
        laid["calibration"] = {**study["calibration"], **laid["calibration"]}
        found = variants_of(checked({**study, **laid}), "minilm-int8", hosts.AMX)
        assert "cpu-onnxruntime-int8-minmax-512-smooth" in map(str, found)


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The values of all keys by dotted name; lists count as values."""
    if not isinstance(value, dict):
        return {path: value}
    inner = (leaves(one, f"{path}.{key}" if path else key) for key, one in value.items())
    return {name: one for part in inner for name, one in part.items()}


def test_own_model_lists_every_default_that_the_embedded_configuration_changes(repository) -> None:
    embedded = yaml.safe_load(CONFIG.read_text())
    models = {"models": {"mine": {"checkpoint": "scratch:bert", "data": "random"}}}
    ours, theirs = leaves(checked({**embedded, **models})), leaves(checked(models))

    def words(value: Any) -> str:
        return ", ".join(value) if isinstance(value, list) else str(value or "none")

    both = ((name, theirs.get(name), own) for name, own in ours.items())
    different = {(name, words(one), words(own)) for name, one, own in both if one != own}
    page = (repository / "docs/own-model.md").read_text().partition("| key | default | config/")[2]
    table = page.partition("\n\n")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    assert set(rows) == different != set()


def with_key(key: str, value: Any) -> dict[str, Any]:
    """A configuration in which the key of that dotted name has that value."""
    *places, last = key.split(".")
    level = config = with_model()
    for place in places:
        level = level.setdefault(place, {})
    level[last] = value
    return config


def test_a_key_that_is_gone_names_what_takes_its_place_and_one_like_no_other_all_keys() -> None:
    for key, place in GONE.items():
        gone = key.replace("*", "tiny")
        assert refused(**with_key(gone, {})) == f"config: {gone}: this key is gone: {place}"
    keys = ", ".join(sorted(DOCUMENT["properties"]))
    assert refused(zzz=1) == f"config: zzz: unknown key; allowed: {keys}"
    for empty in ({}, None):
        with pytest.raises(ConfigError, match=r"--configfile config/config\.yaml"):
            checked(empty)


def test_whatever_is_wrong_is_one_line_that_begins_with_the_key() -> None:
    """Sixty keys of all levels: misspelt, and with values that none of them takes."""
    names = [name for name, _ in properties(DOCUMENT) if not {*"|["} & {*name}]
    wrong = (("x", 1), ("", {"nonsense": [None]}), ("", [[]]))
    for number, name in enumerate(random.Random(0).sample(names, 60)):
        key, (end, value) = name.replace("NAME", "tiny"), wrong[number % len(wrong)]
        message = refused(**with_key(f"{key}{end}", value))
        assert message.startswith(f"config: {key.partition('.')[0]}")


WORDS = {"batch": ["1", "16"], "sequence": ["128"]}
PROFILE = {"batch": ["1", "2", "3"], "sequence": [1, 64, 128]}


@pytest.mark.parametrize(
    ("key", "given", "expected"),
    [
        ("calibration.samples", "256", [256]),
        ("calibration.samples", [8.0], [8]),
        ("accuracy_budget_points", "0.5", 0.5),
        ("strict", "true", True),
        ("repairs.good.activations", "null", None),
        ("tensorrt.optimization_level", "0", 0),
        ("engines.onnxruntime", "int8", ["int8"]),
        ("shapes", {"batch": "1", "sequence": "64"}, [{"batch": 1, "sequence": 64}]),
        ("tensorrt.profiles", PROFILE, [{"batch": [1, 2, 3], "sequence": [1, 64, 128]}]),
        ("buckets", "null", None),
        ("buckets", WORDS, {"batch": [1, 16], "sequence": [128]}),
        ("models.tiny.labels", [0, "1"], ["0", "1"]),
        ("models.tiny.train.amp", False, "off"),  # as YAML reads off
    ],
)
def test_words_of_the_command_line_become_what_the_schema_asks_for(key, given, expected) -> None:
    """Snakemake gives what stands behind --config as words; one value is a list of it."""
    found: Any = configured(**with_key(key, given))
    for name in key.split("."):
        found = found[name]
    assert found == expected
    assert type(found) is type(expected)


BUCKETS = {"batch": [4], "sequence": [64]}
ON_SHAPE = {**with_model(max_sequence=64), "shapes": [{"batch": 4, "sequence": 64}]}
LONG = {"models": {"tiny": {**MODEL, "max_sequence": 64}, "long": {**MODEL, "max_sequence": 65}}}
WIDE = {**BUCKETS, "batch": [99]}
SHORT = {"tensorrt": {"profiles": [{"batch": [1, 2, 3], "sequence": [1, 4, 8]}]}}
IMAGES = {"shapes": [{"batch": 1, "height": 8, "width": 8}, {"batch": 1, "sequence": 8}]}
OF_IMAGES = {"task": "image-classification", "checkpoint": "scratch:convnext"}
LOADED = {"variants": ["cpu-pytorch-fp32", "cpu-openvino-fp32"], "batch": 8}
REFUSED: list[tuple[dict[str, Any], str]] = [
    # a wrong entry is named by its place, counted from one
    ({"calibration": {"samples": {"minmax": 8}}}, "calibration.samples = {'minmax': 8}: must"),
    ({"calibration": {"samples": [8, "x"]}}, "calibration.samples (entry 2) = 'x': must be"),
    ({"shapes": 64}, "shapes = 64: must be array"),
    ({"devices": "gpu"}, "devices = ['gpu']: must be 'auto' or array of cpu, cuda"),
    ({"engines": {"onnxruntime": "int9"}}, "engines.onnxruntime (entry 1) = 'int9': must be"),
    ({"latency": {"loads": "3"}}, "latency.loads = '3': must be one of 1, 2"),
    ({"latency": {"min_seconds": math.nan}}, "latency.min_seconds = nan: must be a finite number"),
    ({"models": {2024: {}}}, "models.2024: a key must be a word; put it in quotes"),
    (with_model(labels=["a", "a"]), "models.tiny.labels = ['a', 'a']: ['a', 'a'] has non-unique"),
    (with_model(labels=[False, True]), "models.tiny.labels (entry 1) = False: must be string"),
    (with_model(activation="swoosh"), "models.tiny.activation = 'swoosh': must be one of"),
    ({"models": {"checkpoint": "onnx:a", "data": "random"}}, "models.checkpoint = 'onnx:a': must"),
    # constraints between keys
    (
        {"calibration": {"methods": "minmax"}},
        "engines.openvino: int8 needs one of the calibration methods nncf, calibration.methods has",
    ),
    ({"calibration": {"samples": [8, 64], "pool": 32}}, "calibration.samples = 64: more than cali"),
    (
        {"engines": {"onnxruntime": ["int8-auto"]}, "accuracy_budget_points": 0.25},
        "accuracy_budget_points = 0.25: more than calibration.pool = 1024 can tell for int8-auto;",
    ),
    ({"traffic": {"variants": ["cpu-pytorch-fp23"]}}, "traffic.variants: cpu-pytorch-fp23: no con"),
    ({"threads": 9999}, "threads = 9999: this process may use "),
    ({"prices": {"*": 0}}, "prices.* = 0"),
    ({"training": {"epochs": 1}}, "training.epochs = 1: the first epoch is told apart"),
    ({"devices": ["cpu"], "engines": {"tensorrt": ["fp16"]}}, "devices = ['cpu']: no configured e"),
    (
        {"devices": ["cpu", "cuda"], "engines": {"openvino": ["fp32", "int8"]}},
        "devices = ['cpu', 'cuda']: no configured engine has one of its precisions on cuda (openv",
    ),
    *(({"cuda": {"streams": one}}, "cuda.streams") for one in ([0], [2, 2], [17], "many")),
    ({"calibration": {"methods": ["minmx"]}}, "calibration.methods (entry 1) = 'minmx': must"),
    ({"remeasure": "failed"}, "remeasure = 'failed': must be"),
    ({"repairs": {"auto": {}}}, "repairs = 'auto': must be a word of at most 50 small letters"),
    ({"repairs": {"a": {"smothquant": 0.5}}}, "repairs.a.smothquant: unknown key; did you mean"),
    # models
    (with_model(checkpoint=f"path:{CONFIG.parent}"), "models.tiny.checkpoint = path:"),
    (with_model(checkpoint="hub:owner/name"), "models.tiny.checkpoint = 'hub:owner/name': must"),
    (with_model(quantized=True), "models.tiny.quantized: only an ONNX file (checkpoint: onnx:FIL"),
    (with_model(train=None, qat={"scheme": "e4m3", "outputs": True}), "models.tiny.qat.outputs: e"),
    (with_model(train=None, qat={"sparsity": 0.5}), "models.tiny.qat.sparsity: rounding moves"),
    (with_model(train={}, qat={}), "models.tiny.qat: the model has train too; move qat"),
    (with_model(checkpoint="path:none"), "models.tiny.checkpoint = path:none: there is"),
    (with_model(data="files:none/*.csv"), "models.tiny.data = files:none/*.csv: no file matches"),
    (with_model(data="digits"), "models.tiny.data = digits: no data source of text-class"),
    (
        {**with_model(**OF_IMAGES, images="a.zip", data="digits"), **IMAGES},
        "models.tiny.data = digits: images = a.zip: only",
    ),
    (
        {**with_model(**{**OF_IMAGES, "data": "docstrings:a,b"}), **IMAGES},
        "models.tiny.data = docstrings:a,b: no data source of image-classification; there are dig",
    ),
    # buckets
    ({"buckets": {"batch": [1]}}, "buckets: the key sequence is missing, for models.tiny"),
    ({"buckets": {**BUCKETS, "batch": [0]}}, "buckets.batch (entry 1) = 0"),
    (
        {**ON_SHAPE, "buckets": {**BUCKETS, "batch": [2, 1]}},
        "shapes: batch = 4: beyond buckets.batch = [2, 1]; give buckets that hold it, or buckets: ",
    ),
    ({**ON_SHAPE, "buckets": {**BUCKETS, "sequence": [63]}}, "shapes: sequence = 64: beyond bucke"),
    ({**ON_SHAPE, **LONG, "buckets": BUCKETS}, "models.long.max_sequence = 65: beyond buckets.seq"),
    ({"buckets": None, "engines": {"tvm": ["fp32"]}}, "buckets = null: tvm compiles static shapes"),
    (
        {**ON_SHAPE, "engines": {"openvino": ["fp32"]}, "traffic": LOADED},
        "traffic.batch = 8: beyond buckets.batch = [1, 4];",
    ),
    (
        {"devices": ["cuda"], "engines": {"compile": ["fp16"]}, "buckets": WIDE},
        "shapes: sequence = 128: beyond buckets.sequence = [64]",
    ),
    ({"devices": ["cuda"], "engines": {"tensorrt": ["fp16"]}, **SHORT}, "shapes: "),
    # what no sensible user writes
    (with_model(checkpoint="path:~nosuchuser"), "models.tiny.checkpoint = path:~nosuchuser: there"),
    (with_model(checkpoint=f"onnx:{'a/' * 2048}b"), "models.tiny.checkpoint"),
    (with_model(data="files:/**/*"), "models.tiny.data = files:/**/*: /**/*: searches the whole m"),
    (with_model(data="files:a/**b/*"), "models.tiny.data"),
    (with_model(checkpoint="scratch:bert?hidden_size=["), "models.tiny.checkpoint"),
    (with_model(seed=2**64), "models.tiny.seed"),
    (with_model(**{"from": ["tiny"]}), "models.tiny.from = ['tiny']: not the name of a model"),
    (with_model(data="x" * 5000), "models.tiny.data"),
    ({"models": list(range(2000))}, "models = [0, 1"),
    ({"models": {"a" * 300: MODEL}}, "models"),
    ({"accuracy_budget_points": 1e25}, "accuracy_budget_points"),
    ({"shapes": [{"batch": 10**30, "sequence": 8}]}, "shapes (entry 1).batch"),
]


@pytest.mark.parametrize(("keys", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_is_wrong_is_one_line_that_begins_with_the_key(keys, said) -> None:
    message = refused(**keys)
    assert message.startswith(f"config: {said}")
    assert len(message) < 1000


def test_the_path_of_a_source_is_said_once_and_a_model_is_told_how_it_is_named() -> None:
    for keys in ({"checkpoint": "path:none"}, {"checkpoint": "onnx:none"}, {"data": "files:none"}):
        assert refused(**with_model(**keys)).count("none") == 1
    message = refused(models={"checkpoint": "onnx:a", "data": "random"})
    assert message.endswith("; a model has a name: models: {mine: {checkpoint: …, data: …}}")
    assert "File name too long" in refused(**with_model(checkpoint=f"path:{'a' * 4096}"))
    assert "fast_swish" in refused(**with_model(activation="swoosh"))
    # aliases within themselves and of aliases
    within: list[Any] = []
    within.append(within)
    assert "levels" in refused(shapes=within)
    bomb: list[Any] = ["x"]
    for _ in range(12):
        bomb = [bomb] * 10
    assert "aliases" in refused(shapes=bomb)


TRAFFIC = {"traffic": {"variants": ["cpu-pytorch-fp32", "cpu-onnxruntime-fp32"], "batch": 8}}
ON_GPU = {"devices": ["cuda"], "engines": {"tvm": ["fp32"], "tensorrt": ["fp16"]}}


@pytest.mark.parametrize(
    "keys",
    [
        {**ON_SHAPE, "buckets": BUCKETS},
        {**ON_SHAPE, "buckets": {"batch": [8, 1], "sequence": [128, 32]}},
        # engines that take any shape
        {**ON_SHAPE, "buckets": BUCKETS, **TRAFFIC},
        {"engines": {"onnxruntime": ["fp32"]}, "buckets": {"batch": [1], "sequence": [1]}},
        {"shapes": [{"batch": 1000, "sequence": 511}]},
        {"shapes": [{"batch": 1000, "sequence": 511}], "buckets": None},
        # of a device that is not planned no sizes are checked
        {**ON_GPU, "buckets": None},
        {**ON_GPU, "devices": ["cpu"], **SHORT},
        {"devices": ["cuda"], "cuda": {"graphs": False}, "buckets": BUCKETS},
        {"devices": ["cpu", "cuda"], "cuda": {"streams": [1, 16]}},
        {"threads": min(len(os.sched_getaffinity(0)), cpu_quota())},
        {"threads": 9999, "host": "large-node"},
        {"engines": {"onnxruntime": ["int8"]}, "accuracy_budget_points": 0.25},
        with_model(train=None, qat={"scheme": "s8s8", "outputs": True}),
    ],
    ids=str,
)
def test_what_fits_together_is_accepted(keys: dict[str, Any]) -> None:
    configured(**keys)


def test_traffic_of_a_variant_that_one_of_the_models_has_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    file.touch()
    models = {"m": MODEL, "n": {**MODEL, "checkpoint": f"onnx:{file}"}}
    keys = {"devices": ["cpu"], "engines": {"pytorch": ["fp32"]}}
    keys["traffic"] = {"variants": ["cpu-pytorch-fp32", "cpu-onnxruntime-fp32"]}
    configured(models=models, **keys)
    assert "cpu-onnxruntime-fp32: no configured variant" in refused(models={"m": MODEL}, **keys)


def test_sizes_and_labels_are_those_that_a_local_model_takes(tmp_path: Path) -> None:
    known = {"num_labels": 2, "max_position_embeddings": 64}
    known["architectures"] = ["BertForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(known))
    (tmp_path / "model.safetensors").write_bytes(b"not read here")
    model = {"checkpoint": f"path:{tmp_path}", "max_sequence": 64}
    keys = {**with_model(**model), "shapes": [{"batch": 1, "sequence": 64}]}
    configured(**keys)
    longer = {**keys, "shapes": [{"batch": 1, "sequence": 65}]}
    assert refused(**longer) == "config: shapes: sequence = 65: tiny takes at most 64 tokens"
    buckets = {"batch": [1, 16], "sequence": [64, 128]}
    found = refused(**keys, buckets=buckets)
    assert found == "config: buckets.sequence = 128: tiny takes at most 64 tokens"
    configured(**keys, buckets=buckets, engines={"onnxruntime": ["fp32"]})
    known["architectures"] = ["BertForTokenClassification"]
    (tmp_path / "config.json").write_text(json.dumps(known))
    assert "BertForTokenClassification classifies each token; only" in refused(**keys)
    known["architectures"] = ["BertForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(known))
    keys["models"] = with_model(**model, labels=["bad", "good", "odd"])["models"]
    assert refused(**keys) == (
        f"config: models.tiny.labels: 3 names, path:{tmp_path} has 2 outputs; list one name for "
        "each output, in the order of the outputs"
    )


def test_an_onnx_file_is_neither_changed_nor_left_without_an_engine_that_runs_it(tmp_path) -> None:
    (tmp_path / "model.onnx").touch()
    model = {"checkpoint": f"onnx:{tmp_path}/model.onnx"}
    configured(**with_model(**model))
    changes = {"train": {"epochs": 1}, "activation": "relu", "prune": {"layers": 1}}
    for key, value in changes.items():
        message = refused(**with_model(**model, **{key: value}))
        said = f"config: models.tiny.{key}: the model is an ONNX file and cannot "
        assert message.startswith(said)
        assert message.endswith(f"remove {key}, or start from its checkpoint")
    keys = {**with_model(**model, quantized=True), "devices": ["cpu"]}
    for engines in ({"openvino": ["bf16"]}, {"onnxruntime": ["int8-dynamic"]}):
        said = "config: models.tiny.quantized: no engine runs the file as it is; add a precision"
        assert refused(**keys, engines=engines).startswith(said)
    configured(**keys, engines={"onnxruntime": ["int8"]})

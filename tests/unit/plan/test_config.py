import copy
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import hosts
import jsonschema
import pytest
import yaml
from tightrope.engine_table import ENGINES
from tightrope.errors import ConfigError
from tightrope.plan.config import GONE, checked
from tightrope.plan.config_checks import check_named_variants
from tightrope.plan.variants import configured
from tightrope.variants import DEVICES, GIVEN, METHODS, PRECISIONS, QAT

MODEL = {"checkpoint": "scratch:bert?max_position_embeddings=512", "data": "random"}
# config.json of a checkpoint in a folder
LOCAL_MODEL = {
    "architectures": ["BertForSequenceClassification"],
    "num_labels": 2,
    "max_position_embeddings": 64,
}


@pytest.fixture(scope="session")
def schema(repository: Path) -> Path:
    return repository / "config" / "schema.yaml"


@pytest.fixture
def config() -> dict[str, Any]:
    """The smallest configuration."""
    return {"models": {"tiny": dict(MODEL)}}


def refused(config: dict[str, Any], schema: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        checked(config, schema)
    message = str(caught.value)
    assert "\n" not in message
    return message


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


def test_the_schema_is_a_schema_that_allows_no_unknown_key_at_any_level(schema: Path) -> None:
    document = yaml.safe_load(schema.read_text())
    jsonschema.Draft202012Validator.check_schema(document)
    levels = [("", document), *properties(document)]
    levels += [(f"{name}[]", one["items"]) for name, one in levels if "items" in one]
    levels += [
        (f"{name}.NAME", one["additionalProperties"])
        for name, one in levels
        if isinstance(one.get("additionalProperties"), dict)
    ]
    objects = [(name, one) for name, one in levels if "properties" in one]
    assert len(objects) > 10
    assert {"buckets|", "onnxruntime", "openvino", "tensorrt"} <= {name for name, _ in objects}
    assert not [name for name, one in objects if one.get("additionalProperties") is not False]


def test_every_key_has_a_default_or_must_be_given(schema: Path, config: dict[str, Any]) -> None:
    document = yaml.safe_load(schema.read_text())
    filled = checked(config, schema)
    assert set(filled) == set(document["properties"])
    model = document["properties"]["models"]["additionalProperties"]
    assert set(filled["models"]["tiny"]) == set(model["properties"])
    for name in (
        "calibration",
        "latency",
        "onnxruntime",
        "openvino",
        "profile",
        "throughput",
        "traffic",
    ):
        assert set(filled[name]) == set(document["properties"][name]["properties"]), name


def test_the_defaults_are_valid_themselves(schema: Path, config: dict[str, Any]) -> None:
    filled = checked(config, schema)
    assert checked(filled, schema) == filled
    assert filled["accuracy_budget_points"] == 1.0
    assert filled["calibration"] == {
        "methods": ["minmax", "nncf"],
        "samples": [512],
        "pool": 1024,
        "percentile": 99.99,
        "reduce_range": "auto",
    }
    assert filled["repairs"] == {}
    assert filled["buckets"] == "auto"
    assert filled["openvino"] == {"route": "onnx", "blobs": False, "static_programs": None}
    assert filled["onnxruntime"] == {
        "provider": "cuda",
        "fusions": False,
        "attention_operator": False,
        "optimization": "all",
        "spinning": True,
        "arena": True,
    }


def test_the_schema_names_the_engines_precisions_and_methods_that_there_are(schema: Path) -> None:
    known = yaml.safe_load(schema.read_text())["properties"]
    engines = known["engines"]["properties"]
    assert set(engines) == set(ENGINES)
    for one in engines.values():
        assert set(one["items"]["enum"]) == set(PRECISIONS) - {GIVEN}
    methods = known["calibration"]["properties"]["methods"]["items"]["enum"]
    assert set(methods) == set(METHODS) - {QAT}
    assert set(known["devices"]["anyOf"][1]["items"]["enum"]) == set(DEVICES)


def test_every_configuration_of_the_project_is_valid(
    repository: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what the studies of images read is not in the project
    (tmp_path / "tiny_imagenet_20c").mkdir()
    (tmp_path / "tiny_imagenet_20c/labels.tsv").write_text("file\tname\n")
    tarfile.open(tmp_path / "tiny_imagenet_20c/images.tar.gz", "w:gz").close()
    monkeypatch.chdir(tmp_path)
    files = [schema.with_name("config.yaml"), *(schema.parent / "experiments").glob("*.yaml")]
    assert len(files) > 10
    for file in files:
        filled = checked(yaml.safe_load(file.read_text()), schema)
        for model in filled["models"]:
            assert configured(filled, model, hosts.AMX)


def test_every_overlay_of_the_project_is_valid_over_the_study(
    repository: Path, schema: Path
) -> None:
    study = yaml.safe_load((repository / "config/experiments/int8.yaml").read_text())
    files = list((repository / "config/experiments/overlays").glob("*.yaml"))
    assert files
    for file in files:
        laid = yaml.safe_load(file.read_text())
        calibration = {**study["calibration"], **laid.pop("calibration")}
        found = configured(
            checked({**study, **laid, "calibration": calibration}, schema), "minilm-int8", hosts.AMX
        )
        assert "cpu-onnxruntime-int8-minmax-512-smooth" in map(str, found)


def test_the_configuration_that_was_given_is_left_as_it_was(
    schema: Path, config: dict[str, Any]
) -> None:
    before = copy.deepcopy(config)
    filled = checked(config, schema)
    filled["models"]["tiny"]["splits"]["train"] = 5
    assert config == before
    assert checked(config, schema)["models"]["tiny"]["splits"]["train"] is None


def test_what_is_given_beats_the_default_and_its_neighbours_stay(
    schema: Path, config: dict[str, Any]
) -> None:
    config["latency"] = {"min_calls": 5}
    config["models"]["tiny"]["train"] = {"epochs": 3}
    filled = checked(config, schema)
    assert (filled["latency"]["min_calls"], filled["latency"]["pairs"]) == (5, 6)
    assert (filled["models"]["tiny"]["train"]["epochs"]) == 3
    assert filled["models"]["tiny"]["train"]["amp"] == "auto"


@pytest.mark.parametrize(
    ("place", "key", "offered"),
    [
        ((), "shape", "shapes"),
        (("latency",), "min_second", "min_seconds"),
        (("models", "tiny"), "chekpoint", "checkpoint"),
        (("models", "tiny", "train"), "epoch", "epochs"),
        (("models", "tiny"), "activations", "activation"),
        (("engines",), "onnx_runtime", "onnxruntime"),
        (("engines",), "torch_script", "torchscript"),
        (("onnxruntime",), "fusion", "fusions"),
        (("openvino",), "blob", "blobs"),
        (("tensorrt",), "profile", "profiles"),
        (("models", "tiny", "inputs"), "input_id", "input_ids"),
        ((), "bucket", "buckets"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_right_one(
    schema: Path, config: dict[str, Any], place: tuple[str, ...], key: str, offered: str
) -> None:
    level = config
    for name in place:
        level = level.setdefault(name, {})
    level[key] = 1
    message = refused(config, schema)
    assert message.startswith(f"config: {'.'.join((*place, key))}: unknown key")
    assert f'did you mean "{offered}"?' in message


def test_a_key_like_no_other_gets_the_list_and_no_guess(
    schema: Path, config: dict[str, Any]
) -> None:
    message = refused({**config, "zzz": 1}, schema)
    assert "did you mean" not in message
    keys = sorted(yaml.safe_load(schema.read_text())["properties"])
    assert keys[0] == "accuracy_budget_points"
    assert message == f"config: zzz: unknown key; allowed: {', '.join(keys)}"


@pytest.mark.parametrize("key", GONE)
def test_a_key_that_is_gone_names_what_takes_its_place(
    schema: Path, config: dict[str, Any], key: str
) -> None:
    *places, last = key.replace("*", "tiny").split(".")
    inner = config
    for place in places:
        inner = inner.setdefault(place, {})
    inner[last] = {}
    gone = ".".join([*places, last])
    assert refused(config, schema) == f"config: {gone}: this key is gone: {GONE[key]}"


@pytest.mark.parametrize("empty", [{}, None])
def test_an_empty_configuration_says_which_file_to_give(schema: Path, empty: Any) -> None:
    assert "--configfile config/config.yaml" in refused(empty, schema)


def test_words_of_the_command_line_become_numbers_where_numbers_are_wanted(
    schema: Path, config: dict[str, Any]
) -> None:
    given = {**config, "calibration": {"samples": ["256"]}, "accuracy_budget_points": "0.5"}
    filled = checked({**given, "strict": "true", "threads": "auto"}, schema)
    assert filled["calibration"]["samples"] == [256]
    assert filled["accuracy_budget_points"] == 0.5
    assert (filled["strict"], filled["threads"]) == (True, "auto")


def test_words_of_the_command_line_become_the_values_of_a_choice(
    schema: Path, config: dict[str, Any]
) -> None:
    words = {"latency": {"loads": "2"}, "repairs": {"good": {"activations": "null"}}}
    settings = checked({**config, **words}, schema)
    assert settings["latency"]["loads"] == 2
    assert settings["repairs"]["good"]["activations"] is None
    assert "must be one of 1, 2" in refused({**config, "latency": {"loads": "3"}}, schema)


def test_words_of_the_command_line_become_options_of_the_engines(
    schema: Path, config: dict[str, Any]
) -> None:
    words = {"openvino": {"blobs": "true"}, "tensorrt": {"optimization_level": "0"}}
    filled = checked({**config, **words, "onnxruntime": {"spinning": "false"}}, schema)
    assert filled["openvino"] == {"route": "onnx", "blobs": True, "static_programs": None}
    assert filled["tensorrt"]["optimization_level"] == 0
    assert (filled["onnxruntime"]["spinning"], filled["onnxruntime"]["arena"]) == (False, True)


@pytest.mark.parametrize(("given", "kept"), [(2, 2), ("2", 2), ([0, 1], [0, 1]), (["0"], [0])])
def test_how_many_layers_and_which_are_told_apart(
    schema: Path, config: dict[str, Any], given: Any, kept: Any
) -> None:
    (name,) = config["models"]
    models = {name: {**config["models"][name], "prune": {"layers": given}}}
    filled = checked({**config, "models": models}, schema)
    assert filled["models"][name]["prune"]["layers"] == kept


@pytest.mark.parametrize(
    ("words", "place", "expected"),
    [
        ({"calibration": {"samples": "256"}}, ("calibration", "samples"), [256]),
        ({"calibration": {"samples": 256}}, ("calibration", "samples"), [256]),
        (
            {"calibration": {"methods": "minmax"}, "engines": {"onnxruntime": "int8"}},
            ("calibration", "methods"),
            ["minmax"],
        ),
        ({"engines": {"onnxruntime": "int8"}}, ("engines", "onnxruntime"), ["int8"]),
        ({"shapes": {"batch": "1", "sequence": "64"}}, ("shapes",), [{"batch": 1, "sequence": 64}]),
        ({"devices": "cpu"}, ("devices",), ["cpu"]),
        ({"devices": "auto"}, ("devices",), "auto"),
        ({"graphs": "exported"}, ("graphs",), ["exported"]),
        (
            {"tensorrt": {"profiles": {"batch": ["1", "2", "3"], "sequence": [1, 64, 128]}}},
            ("tensorrt", "profiles"),
            [{"batch": [1, 2, 3], "sequence": [1, 64, 128]}],
        ),
    ],
)
def test_a_single_value_in_the_place_of_a_list_is_a_list_of_it(
    schema: Path, config: dict[str, Any], words: Any, place: tuple[str, ...], expected: Any
) -> None:
    found: Any = checked({**config, **words}, schema)
    for key in place:
        found = found[key]
    assert found == expected


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"calibration": {"samples": {"minmax": 8}}}, "calibration.samples = {'minmax': 8}: must"),
        ({"calibration": {"samples": "many"}}, "calibration.samples (entry 1) = 'many': must be"),
        ({"calibration": {"samples": [8, "x"]}}, "calibration.samples (entry 2) = 'x': must be"),
        ({"shapes": 64}, "shapes = 64: must be array"),
        ({"devices": "gpu"}, "devices = ['gpu']: must be 'auto' or array of cpu, cuda"),
        ({"engines": {"onnxruntime": "int9"}}, "engines.onnxruntime (entry 1) = 'int9': must be"),
    ],
)
def test_a_wrong_entry_is_named_by_its_place_counted_from_one(
    schema: Path, config: dict[str, Any], words: Any, said: str
) -> None:
    assert refused({**config, **words}, schema).startswith(f"config: {said}")


def test_a_precision_without_one_of_its_calibration_methods_gets_both_remedies(
    schema: Path, config: dict[str, Any]
) -> None:
    assert refused({**config, "calibration": {"methods": "minmax"}}, schema) == (
        "config: engines.openvino: int8 needs one of the calibration methods nncf, "
        "calibration.methods has minmax; add one of them, or leave int8 of openvino out"
    )


@pytest.mark.parametrize("key", ["checkpoint", "data"])
def test_the_path_of_a_source_is_said_once(schema: Path, config: dict[str, Any], key: str) -> None:
    for source in {"checkpoint": ("path:none", "onnx:none"), "data": ("files:none/*.csv",)}[key]:
        config["models"]["tiny"][key] = source
        message = refused(config, schema)
        assert message.startswith(f"config: models.tiny.{key} = {source}: ")
        assert message.count("none") == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("null", None),
        ("auto", "auto"),
        (
            {"batch": ["1", "16"], "sequence": ["128"]},
            {"batch": [1, 16], "sequence": [128]},
        ),
    ],
)
def test_buckets_can_be_said_on_the_command_line(
    schema: Path, config: dict[str, Any], words: Any, expected: Any
) -> None:
    """Snakemake gives what stands behind --config as words."""
    assert checked({**config, "buckets": words}, schema)["buckets"] == expected


def test_more_samples_than_the_pool_has_are_refused(schema: Path, config: dict[str, Any]) -> None:
    config["calibration"] = {"samples": [8, 64], "pool": 32}
    message = refused(config, schema)
    assert "calibration.samples = 64: more than calibration.pool = 32" in message


def test_a_shape_longer_than_a_local_model_takes_is_refused(
    schema: Path, config: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LOCAL_MODEL))
    (tmp_path / "model.safetensors").write_bytes(b"not read here")
    config["models"]["tiny"]["checkpoint"] = f"path:{tmp_path}"
    config["models"]["tiny"]["max_sequence"] = 64
    fits = {**config, "shapes": [{"batch": 1, "sequence": 64}]}
    assert checked(fits, schema)["shapes"] == fits["shapes"]
    message = refused({**config, "shapes": [{"batch": 1, "sequence": 65}]}, schema)
    assert message == "config: shapes: sequence = 65: tiny takes at most 64 tokens"


def test_labels_are_a_name_for_each_output_of_a_local_model(
    schema: Path, config: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LOCAL_MODEL))
    (tmp_path / "model.safetensors").write_bytes(b"not read here")
    model = {"checkpoint": f"path:{tmp_path}", "max_sequence": 64}
    config["models"]["tiny"] |= {**model, "labels": [0, "1"]}
    config["shapes"] = [{"batch": 1, "sequence": 64}]
    assert checked(config, schema)["models"]["tiny"]["labels"] == ["0", "1"]
    config["models"]["tiny"]["labels"] = ["bad", "good", "odd"]
    assert refused(config, schema) == (
        f"config: models.tiny.labels: 3 names, path:{tmp_path} has 2 outputs; list one name for "
        "each output, in the order of the outputs"
    )


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (["a", "a"], "models.tiny.labels = ['a', 'a']: ['a', 'a'] has non-unique elements"),
        ([1, "1"], "has non-unique elements"),
        (["a"], "models.tiny.labels = ['a']: ['a'] is too short"),
        ([False, True], "models.tiny.labels (entry 1) = False: must be string"),
    ],
)
def test_labels_that_are_no_names_are_refused(
    labels: list[Any], reason: str, schema: Path, config: dict[str, Any]
) -> None:
    config["models"]["tiny"]["labels"] = labels
    assert reason in refused(config, schema)


def test_traffic_of_a_variant_that_is_not_configured_is_refused(
    schema: Path, config: dict[str, Any]
) -> None:
    fits = {**config, "traffic": {"variants": ["cpu-pytorch-fp32"]}}
    assert checked(fits, schema)["traffic"]["variants"] == ["cpu-pytorch-fp32"]
    message = refused({**config, "traffic": {"variants": ["cpu-pytorch-fp23"]}}, schema)
    assert message == (
        "config: traffic.variants: cpu-pytorch-fp23: no configured variant"
        '; did you mean "cpu-pytorch-fp32"?'
    )


def test_traffic_of_a_variant_that_only_one_of_the_models_has_is_accepted() -> None:
    config = {
        **{"host": "auto", "hosts": {}, "devices": ["cpu"], "engines": {}},
        "models": {
            name: {"checkpoint": source, "task": "text-classification", "quantized": False}
            for name, source in {"m": "path:m", "n": "onnx:n.onnx"}.items()
        },
        "traffic": {"variants": ["cpu-pytorch-fp32", "cpu-onnxruntime-fp32"]},
        "profile": {"variants": []},
        "idleness": {"variants": []},
    }
    check_named_variants(config)
    del config["models"]["n"]
    with pytest.raises(ConfigError, match="cpu-onnxruntime-fp32: no configured variant"):
        check_named_variants(config)


def buckets(batch: list[int], sequence: list[int]) -> dict[str, Any]:
    """A configuration that asks for those buckets, beside one shape of batch 4 and 64 tokens."""
    model = {**MODEL, "max_sequence": 64}
    return {
        "models": {"tiny": model},
        "shapes": [{"batch": 4, "sequence": 64}],
        "buckets": {"batch": batch, "sequence": sequence},
    }


@pytest.mark.parametrize(
    ("batch", "sequence"), [([4], [64]), ([1, 4, 8], [32, 64]), ([8, 1], [128, 32])]
)
def test_buckets_that_hold_what_is_measured_are_accepted(
    schema: Path, batch: list[int], sequence: list[int]
) -> None:
    asked = buckets(batch, sequence)
    assert checked(asked, schema)["buckets"] == asked["buckets"]


@pytest.mark.parametrize(
    ("batch", "sequence", "place", "key"),
    [
        ([1, 2], [64], "shapes: batch = 4", "batch = [1, 2]"),
        ([2, 1], [64], "shapes: batch = 4", "batch = [2, 1]"),
        ([4], [32], "shapes: sequence = 64", "sequence = [32]"),
        ([4], [63], "shapes: sequence = 64", "sequence = [63]"),
    ],
)
def test_a_shape_beyond_the_buckets_is_refused(
    schema: Path, batch: list[int], sequence: list[int], place: str, key: str
) -> None:
    message = refused(buckets(batch, sequence), schema)
    assert message.startswith(f"config: {place}: beyond buckets.{key}; give buckets that hold it")
    assert "buckets: null" in message


def test_texts_longer_than_the_buckets_are_refused(schema: Path) -> None:
    asked = buckets([4], [64])
    asked["models"]["long"] = {**MODEL, "max_sequence": 65}
    message = refused(asked, schema)
    assert message.startswith(
        "config: models.long.max_sequence = 65: beyond buckets.sequence = [64];"
    )


@pytest.mark.parametrize("variants", [[], ["cpu-pytorch-fp32", "cpu-onnxruntime-fp32"]])
def test_traffic_of_engines_that_take_any_shape_may_go_beyond_the_buckets(
    schema: Path, variants: list[str]
) -> None:
    asked = buckets([1, 4], [64])
    asked["traffic"] = {"variants": variants, "batch": 8}
    assert checked(asked, schema)["traffic"]["batch"] == 8


@pytest.mark.parametrize("variant", ["cpu-openvino-fp32", "cpu-tvm-fp32"])
@pytest.mark.parametrize("auto", [False, True])
def test_a_batch_of_traffic_beyond_the_buckets_of_a_static_engine_is_refused(
    schema: Path, variant: str, auto: bool
) -> None:
    """The batches of auto are those of the shapes, 1 among them."""
    asked = buckets([1, 4], [64])
    asked["buckets"] = "auto" if auto else asked["buckets"]
    asked["engines"] = {"openvino": ["fp32"], "tvm": ["fp32"]}
    asked["traffic"] = {"variants": ["cpu-pytorch-fp32", variant], "batch": 8}
    message = refused(asked, schema)
    assert message.startswith("config: traffic.batch = 8: beyond buckets.batch = [1, 4];")
    asked["traffic"]["batch"] = 4
    assert checked(asked, schema)["traffic"]["batch"] == 4


@pytest.mark.parametrize("value", ["auto", None])
def test_without_buckets_of_its_own_any_shape_is_accepted(
    schema: Path, config: dict[str, Any], value: Any
) -> None:
    config["shapes"] = [{"batch": 1000, "sequence": 511}]
    assert checked({**config, "buckets": value}, schema)["buckets"] == value


def test_tvm_without_buckets_is_refused(schema: Path, config: dict[str, Any]) -> None:
    config["buckets"] = None
    assert checked({**config, "engines": {"tvm": []}}, schema)["buckets"] is None
    message = refused({**config, "engines": {"tvm": ["fp32"]}}, schema)
    assert message.startswith("config: buckets")
    assert "tvm" in message
    assert message.endswith("set buckets: auto")


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"batch": [1]}, "sequence"),
        ({"batch": [], "sequence": [64]}, "batch"),
        ({"batch": [0], "sequence": [64]}, "batch"),
        ({"batch": [4, 4], "sequence": [64]}, "batch"),
        ({"batch": [4], "sequence": ["long"]}, "sequence"),
        ({"batch": [4], "sequence": [64], "height": [32]}, "height"),
    ],
)
def test_what_is_wrong_within_the_buckets_is_named(
    schema: Path, config: dict[str, Any], value: dict[str, Any], named: str
) -> None:
    message = refused({**config, "buckets": value}, schema)
    assert message.startswith("config: buckets")
    assert named in message.replace(str(value), "")


def test_a_gpu_can_be_asked_for_outright(schema: Path, config: dict[str, Any]) -> None:
    assert checked({**config, "devices": ["cpu", "cuda"]}, schema)["devices"] == ["cpu", "cuda"]


@pytest.mark.parametrize(
    ("devices", "engines", "named"),
    [
        (["cpu"], {"tensorrt": ["fp16"]}, "on cpu (tensorrt: fp16)"),
        (["cuda"], {"tvm": ["fp32"], "pytorch": []}, "on cuda (tvm: fp32)"),
        (["cpu", "cuda"], {"openvino": ["fp32", "int8"]}, "on cuda (openvino: fp32, int8)"),
    ],
)
def test_a_forced_device_on_which_no_configured_engine_runs_is_refused_in_one_line(
    schema: Path, config: dict[str, Any], devices: list[str], engines: Any, named: str
) -> None:
    message = refused({**config, "devices": devices, "engines": engines}, schema)
    assert message.startswith(f"config: devices = {devices}: no configured engine ")
    assert named in message
    assert message.endswith("leave " + named.split()[1] + " out")


def test_a_device_may_be_forced_for_its_baseline_alone(
    schema: Path, config: dict[str, Any]
) -> None:
    config |= {"devices": ["cuda"], "engines": {"openvino": []}}
    assert checked(config, schema)["devices"] == ["cuda"]


def test_engines_of_a_device_that_is_not_planned_are_not_checked_for_their_sizes(
    schema: Path, config: dict[str, Any]
) -> None:
    engines = {"pytorch": ["fp32"], "openvino": ["fp32"], "tvm": ["fp32"], "tensorrt": ["fp16"]}
    profiles = {"profiles": [{"batch": [1, 1, 1], "sequence": [1, 2, 2]}]}
    config |= {"engines": engines, "tensorrt": profiles, "cuda": {"graphs": False}}
    on_cpu = {**config, "devices": ["cpu"], "buckets": "auto"}
    assert checked(on_cpu, schema)["devices"] == ["cpu"]
    assert "tensorrt.profiles" in refused({**on_cpu, "devices": ["cuda"]}, schema)
    on_gpu = {**config, "devices": ["cuda"], "buckets": None, "tensorrt": {}}
    assert checked(on_gpu, schema)["buckets"] is None
    assert "tvm" in refused({**on_gpu, "devices": ["cpu", "cuda"]}, schema)


@pytest.mark.parametrize("streams", [[0], [2, 2], [17], "many"])
def test_numbers_of_streams_are_distinct_and_from_1_to_16(
    schema: Path, config: dict[str, Any], streams: Any
) -> None:
    assert checked({**config, "cuda": {}}, schema)["cuda"]["streams"] == []
    assert checked({**config, "cuda": {"streams": [1, 16]}}, schema)["cuda"]["streams"] == [1, 16]
    assert "cuda.streams" in refused({**config, "cuda": {"streams": streams}}, schema)


def test_traffic_of_a_variant_of_a_device_that_is_not_planned_is_refused(
    schema: Path, config: dict[str, Any]
) -> None:
    config |= {"devices": ["cuda"], "engines": {"pytorch": ["fp16"], "openvino": ["fp32"]}}
    config["traffic"] = {"variants": ["cuda-pytorch-fp16"]}
    assert checked(config, schema)["traffic"]["variants"] == ["cuda-pytorch-fp16"]
    config["traffic"] = {"variants": ["cpu-openvino-fp32"]}
    assert "cpu-openvino-fp32: no configured variant" in refused(config, schema)


def test_what_is_measured_must_lie_within_the_buckets_of_cuda_graphs(
    schema: Path, config: dict[str, Any]
) -> None:
    config |= {"devices": ["cuda"], "engines": {"compile": ["fp16"]}}
    config["buckets"] = {"batch": [1], "sequence": [8]}
    assert "beyond buckets.sequence = [8]" in refused(config, schema)
    assert checked({**config, "cuda": {"graphs": False}}, schema)["cuda"]["graphs"] is False


def test_what_is_measured_must_lie_within_the_profiles(
    schema: Path, config: dict[str, Any]
) -> None:
    config |= {"devices": ["cuda"], "engines": {"tensorrt": ["fp16"]}}
    config["tensorrt"] = {"profiles": [{"batch": [1, 2, 3], "sequence": [1, 4, 8]}]}
    assert "in none of tensorrt.profiles" in refused(config, schema)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("train", {"epochs": 1}),
        ("activation", "relu"),
        ("prune", {"layers": 1}),
    ],
)
def test_an_onnx_file_takes_neither_a_recipe_nor_another_activation(
    schema: Path, config: dict[str, Any], tmp_path: Path, key: str, value: Any
) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not read here")
    config["models"]["tiny"]["checkpoint"] = f"onnx:{tmp_path}/model.onnx"
    checked(config, schema)
    config["models"]["tiny"][key] = value
    message = refused(config, schema)
    assert message.startswith(f"config: models.tiny.{key}: the model is an ONNX file and cannot ")
    assert message.endswith(f"remove {key}, or start from its checkpoint")


@pytest.mark.parametrize(
    ("qat", "said"),
    [
        ({"scheme": "e4m3", "outputs": True}, "qat.outputs: e4m3 is a scheme of TensorRT's files"),
        ({"sparsity": 0.5}, "qat.sparsity: rounding moves the zeros"),
        ({"scheme": "s8s8", "outputs": "some"}, "qat.outputs = 'some'"),
        ({"scheme": "s8s8", "output": True}, 'did you mean "outputs"?'),
    ],
)
def test_outputs_that_cannot_be_trained_are_refused(
    schema: Path, config: dict[str, Any], qat: dict[str, Any], said: str
) -> None:
    config["models"]["tiny"] |= {"train": None, "qat": qat}
    assert said in refused(config, schema)


def test_without_outputs_the_recipe_is_what_it_was(schema: Path, config: dict[str, Any]) -> None:
    config["models"]["tiny"] |= {"train": None, "qat": {"scheme": "s8s8"}}
    assert "outputs" not in checked(config, schema)["models"]["tiny"]["qat"]
    config["models"]["tiny"]["qat"]["outputs"] = True
    assert checked(config, schema)["models"]["tiny"]["qat"]["outputs"] is True


def test_an_unknown_activation_is_refused_with_those_that_there_are(
    schema: Path, config: dict[str, Any]
) -> None:
    config["models"]["tiny"]["activation"] = "swoosh"
    message = refused(config, schema)
    assert "models.tiny.activation = 'swoosh'" in message
    assert "fast_swish" in message


def test_buckets_beyond_what_a_local_model_takes_are_refused(
    schema: Path, config: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LOCAL_MODEL))
    (tmp_path / "model.safetensors").write_bytes(b"not read here")
    config["models"]["tiny"] |= {"checkpoint": f"path:{tmp_path}", "max_sequence": 64}
    config["shapes"] = [{"batch": 1, "sequence": 64}]
    config["buckets"] = {"batch": [1, 16], "sequence": [64, 128]}
    assert refused(config, schema) == "config: buckets.sequence = 128: tiny takes at most 64 tokens"
    config["engines"] = {"onnxruntime": ["fp32"]}
    assert checked(config, schema)["buckets"] == config["buckets"]


def test_buckets_are_no_matter_where_no_engine_has_them(
    schema: Path, config: dict[str, Any]
) -> None:
    config["engines"] = {"onnxruntime": ["fp32"], "openvino": []}
    config["buckets"] = {"batch": [1], "sequence": [1]}
    assert checked(config, schema)["buckets"] == config["buckets"]


def test_more_threads_than_the_machine_has_are_refused_but_for_another_machine(
    schema: Path, config: dict[str, Any]
) -> None:
    config["threads"] = os.cpu_count()
    assert checked(config, schema)["threads"] == os.cpu_count()
    config["threads"] = 9999
    message = refused(config, schema)
    assert message.startswith("config: threads = 9999: this machine has ")
    assert checked({**config, "host": "large-node"}, schema)["threads"] == 9999


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_finite_number_is_refused(
    schema: Path, config: dict[str, Any], number: float
) -> None:
    config["latency"] = {"min_seconds": number}
    words = f"config: latency.min_seconds = {number}: must be a finite number"
    assert refused(config, schema) == words


def test_a_whole_number_with_a_point_is_an_integer(schema: Path, config: dict[str, Any]) -> None:
    config |= {"threads": 1.0, "calibration": {"samples": [8.0]}}
    found = checked(config, schema)
    numbers = [found["threads"], *found["calibration"]["samples"]]
    assert numbers == [1, 8]
    assert all(type(number) is int for number in numbers)


@pytest.mark.parametrize(
    ("place", "key", "words"),
    [
        ((), 3, "config: 3: a key must be a word; put it in quotes"),
        (("models",), 2024, "config: models.2024: a key must be a word; put it in quotes"),
        (("models",), True, "config: models.True: a key must be a word; put it in quotes"),
        (("models",), None, "config: models.None: a key must be a word; put it in quotes"),
    ],
)
def test_a_key_that_is_no_word_is_refused(
    schema: Path, config: dict[str, Any], place: tuple[str, ...], key: Any, words: str
) -> None:
    inner = config
    for name in place:
        inner = inner[name]
    inner[key] = {}
    assert refused(config, schema) == words


def test_a_pool_that_cannot_tell_the_budget_of_int8_auto_is_refused_with_one_that_can(
    schema: Path, config: dict[str, Any]
) -> None:
    config |= {"engines": {"onnxruntime": ["int8-auto"]}, "accuracy_budget_points": 0.25}
    with pytest.raises(ConfigError, match=r"calibration\.pool = 1024 can tell .* a pool of 1107,"):
        checked(config, schema)
    checked({**config, "calibration": {"pool": 1107}}, schema)
    checked({**config, "engines": {"onnxruntime": ["int8"]}}, schema)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"data": "digits"}, "models.tiny.data = digits: no data source of text-class"),
        ({"data": "digits", "images": "a.zip"}, "models.tiny.data = digits: images = a.zip: only"),
        ({"data": "docstrings:a,b"}, "no data source of image-classification; there are digits"),
        ({"data": "files:none"}, "models.tiny.data = files:none: no file matches"),
        (
            {"checkpoint": "onnx:a.onnx"},
            "models.tiny.checkpoint = onnx:a.onnx: there is no such file",
        ),
    ],
)
def test_sources_must_be_those_of_the_task(
    config: dict[str, Any], schema: Path, keys: dict[str, str], said: str
) -> None:
    task = "text-classification" if "text-class" in said else "image-classification"
    config["models"]["tiny"] |= {"task": task, "checkpoint": "scratch:convnext", **keys}
    config["shapes"] = [{"batch": 1, "height": 8, "width": 8}, {"batch": 1, "sequence": 8}]
    assert said in refused(config, schema)


def test_off_is_a_word_though_yaml_reads_it_as_false(schema: Path, config: dict[str, Any]) -> None:
    recipe = yaml.safe_load("{amp: off, augmentation: off, compile: false}")
    assert recipe["amp"] is False
    config["models"]["tiny"]["train"] = recipe
    filled = checked(config, schema)["models"]["tiny"]["train"]
    assert (filled["amp"], filled["augmentation"], filled["compile"]) == ("off", "off", False)
    config["models"]["tiny"]["train"] = {"amp": "fp8"}
    assert "train.amp = 'fp8': must be one of auto, off, bf16, fp16" in refused(config, schema)


def test_one_epoch_is_too_few_to_measure_a_training(schema: Path, config: dict[str, Any]) -> None:
    config["training"] = {"epochs": 1}
    assert "training.epochs = 1: the first epoch is told apart" in refused(config, schema)
    config["training"] = {"epochs": 0}
    assert checked(config, schema)["training"] == {"epochs": 0, "seeds": [0, 1, 2]}


def test_a_model_without_a_name_is_told_how_it_is_named(schema: Path) -> None:
    message = refused({"models": {"checkpoint": "onnx:a", "data": "random"}}, schema)
    assert "models.checkpoint = 'onnx:a': must be " in message
    assert message.endswith("; a model has a name: models: {mine: {checkpoint: …, data: …}}")


QUANTIZED = {"models": {"tiny": {**MODEL, "quantized": True}}}


def test_only_an_onnx_file_can_be_quantized_already(schema: Path) -> None:
    told = r"models.tiny.quantized: only an ONNX file .*, not scratch:bert.*; remove quantized"
    with pytest.raises(ConfigError, match=told):
        checked(QUANTIZED, schema)


@pytest.mark.parametrize("engines", [{"openvino": ["bf16"]}, {"onnxruntime": ["int8-dynamic"]}])
def test_a_model_that_is_quantized_already_needs_an_engine_that_runs_it(
    schema: Path, tmp_path: Path, engines: dict[str, list[str]]
) -> None:
    file = tmp_path / "quantized.onnx"
    file.touch()
    model = {**MODEL, "checkpoint": f"onnx:{file}", "quantized": True}
    told = r"models.tiny.quantized: no engine runs the file as it is; add .*onnxruntime: \[int8\]"
    with pytest.raises(ConfigError, match=told):
        checked({"models": {"tiny": model}, "devices": ["cpu"], "engines": engines}, schema)
    engines = {"onnxruntime": ["int8"]}
    checked({"models": {"tiny": model}, "devices": ["cpu"], "engines": engines}, schema)


def test_given_is_never_listed(schema: Path) -> None:
    with pytest.raises(ConfigError, match="must be one of fp32"):
        checked({"models": {"tiny": MODEL}, "engines": {"onnxruntime": ["given"]}}, schema)

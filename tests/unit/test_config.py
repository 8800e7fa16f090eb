import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tightrope.config import checked
from tightrope.errors import ConfigError
from tightrope.variants import DEVICES, ENGINES, METHODS, PRECISIONS, configured

MODEL = {"checkpoint": "scratch:bert?max_position_embeddings=512", "data": "random"}


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
    assert len(objects) > 6
    assert not [name for name, one in objects if one.get("additionalProperties") is not False]


def test_every_key_has_a_default_or_must_be_given(schema: Path, config: dict[str, Any]) -> None:
    document = yaml.safe_load(schema.read_text())
    filled = checked(config, schema)
    assert set(filled) == set(document["properties"])
    model = document["properties"]["models"]["additionalProperties"]
    assert set(filled["models"]["tiny"]) == set(model["properties"])
    assert set(filled["latency"]) == set(document["properties"]["latency"]["properties"])


def test_the_defaults_are_valid_themselves(schema: Path, config: dict[str, Any]) -> None:
    filled = checked(config, schema)
    assert checked(filled, schema) == filled
    assert filled["accuracy_budget_points"] == 1.0
    assert filled["calibration"] == {"methods": ["minmax", "nncf"], "samples": [512], "pool": 1024}


def test_the_schema_names_the_engines_precisions_and_methods_that_there_are(schema: Path) -> None:
    known = yaml.safe_load(schema.read_text())["properties"]
    engines = known["engines"]["properties"]
    assert set(engines) == set(ENGINES)
    for one in engines.values():
        assert set(one["items"]["enum"]) == set(PRECISIONS)
    assert set(known["calibration"]["properties"]["methods"]["items"]["enum"]) == set(METHODS)
    assert set(known["devices"]["anyOf"][1]["items"]["enum"]) == set(DEVICES)


def test_every_configuration_of_the_project_is_valid(repository: Path, schema: Path) -> None:
    files = [file for file in (repository / "config").glob("*.yaml") if file != schema]
    assert repository / "config" / "config.yaml" in files
    for file in files:
        assert configured(checked(yaml.safe_load(file.read_text()), schema))


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
    assert (filled["latency"]["min_calls"], filled["latency"]["pairs"]) == (5, 20)
    assert (filled["models"]["tiny"]["train"]["epochs"]) == 3
    assert filled["models"]["tiny"]["train"]["precision"] == "auto"


@pytest.mark.parametrize(
    ("place", "key", "offered"),
    [
        ((), "shape", "shapes"),
        (("latency",), "min_second", "min_seconds"),
        (("models", "tiny"), "chekpoint", "checkpoint"),
        (("models", "tiny", "train"), "epoch", "epochs"),
        (("engines",), "onnx_runtime", "onnxruntime"),
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
    assert "allowed: accuracy_budget_points, calibration" in message


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


def test_more_samples_than_the_pool_has_are_refused(schema: Path, config: dict[str, Any]) -> None:
    config["calibration"] = {"samples": [8, 64], "pool": 32}
    message = refused(config, schema)
    assert "calibration.samples = 64: more than calibration.pool = 32" in message


def test_a_shape_longer_than_a_local_model_takes_is_refused(
    schema: Path, config: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 64}))
    (tmp_path / "model.safetensors").write_bytes(b"not read here")
    config["models"]["tiny"]["checkpoint"] = f"path:{tmp_path}"
    config["models"]["tiny"]["max_sequence"] = 64
    fits = {**config, "shapes": [{"batch": 1, "sequence": 64}]}
    assert checked(fits, schema)["shapes"] == fits["shapes"]
    message = refused({**config, "shapes": [{"batch": 1, "sequence": 65}]}, schema)
    assert message == "config: shapes: sequence = 65: tiny takes at most 64 tokens"


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


def test_a_gpu_cannot_be_asked_for_outright_yet(schema: Path, config: dict[str, Any]) -> None:
    assert "not yet" in refused({**config, "devices": ["cpu", "cuda"]}, schema)

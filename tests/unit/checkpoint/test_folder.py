"""A checkpoint of another's making: no code of its own, and one line where it is of no use."""

import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import save_file
from tightrope.checkpoint.folder import copy, without_code
from tightrope.checkpoint.source import (
    known_outputs,
    local_files,
    longest_sequence,
    parse_source,
    unusable_head,
)
from tightrope.errors import ConfigError, TightropeError, in_foreign_files, printable

CONFIG: dict[str, Any] = {
    **{"model_type": "bert", "architectures": ["BertForSequenceClassification"]},
    **{"max_position_embeddings": 64, "num_labels": 2},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint as far as it is read before it is loaded."""
    import numpy

    (tmp_path / "mine").mkdir()
    save_file({"w": numpy.zeros(1)}, tmp_path / "mine/model.safetensors")
    (tmp_path / "mine/config.json").write_text(json.dumps(CONFIG))
    return tmp_path / "mine"


def planned(folder: Path) -> list[object]:
    """What a plan asks of a local checkpoint."""
    source = f"path:{folder}"
    return [ask(source) for ask in (local_files, longest_sequence, unusable_head, known_outputs)]


CODE = {
    "auto_map": {"AutoModel": "evil.Model"},
    "_attn_implementation": "evil/kernel",
    "attn_implementation": "evil/kernel",
    "_experts_implementation": "evil/kernel",
    "_name_or_path": "/home/author/model",
    "inner": {"attn_implementation": "evil/kernel", "kept": [{"auto_map": {}}, 1]},
}


def test_fields_that_load_code_are_left_out_of_the_copy(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer_config.json"):
        (folder / name).write_text(json.dumps({**CONFIG, **CODE, "vocab_file": "/etc/passwd"}))
    copy("path:mine", [folder / "config.json", folder / "tokenizer_config.json"], tmp_path)
    for name in ("config.json", "tokenizer_config.json"):
        assert json.loads((tmp_path / name).read_text()) == {**CONFIG, "inner": {"kept": [{}, 1]}}
    # settings without such fields keep their bytes
    content = b'{"b": 1,\n   "a": 2}\n'
    assert without_code("path:mine", "config.json", content) is content


def test_a_tokenizer_that_cannot_be_read_is_one_line(folder: Path, tmp_path: Path) -> None:
    (folder / "tokenizer.json").write_text('{"version": "1.0", "model": {"type": "another"}}')
    with pytest.raises(TightropeError, match=r"\.json cannot be read: .*; save") as caught:
        parse_source(f"path:{folder}").check(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *((one, "") for one in ("[]", "", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 50_000)),
        *((json.dumps({**CONFIG, name: [5]}), "") for name in CONFIG),
        *((json.dumps({**CONFIG, name: {"a": 1}}), "") for name in CONFIG),
        (json.dumps({**CONFIG, "num_labels": 10**400}), ""),
        (json.dumps({**CONFIG, "id2label": [1]}), ""),
        (json.dumps({**CONFIG, "model_type": "roberta", "pad_token_id": "x"}), ""),
        (json.dumps({**CONFIG, "problem_type": ["a"]}), ""),
        # weights that are quantized by another library
        *(
            (json.dumps({**CONFIG, key: {"quant_method": "gptq"}}), f"{key}: its weights")
            for key in ("quantization_config", "compression_config")
        ),
    ],
)
def test_a_config_of_another_shape_is_one_line(folder: Path, content: str, said: str) -> None:
    (folder / "config.json").write_text(content)
    with pytest.raises(ConfigError, match=rf"config\.json.*{said}"):
        planned(folder)


@pytest.mark.parametrize(
    "source",
    [
        "path:~nosuchuser/model",
        "scratch:bert?hidden_size=" + "[" * 5000,
        "scratch:bert?hidden_size=2001-99-99",
        "scratch:bert?_attn_implementation=evil/kernel",
        "scratch:bert?__class__=5",
    ],
)
def test_a_source_that_cannot_be_parsed_is_one_line(source: str) -> None:
    with pytest.raises(ConfigError):
        local_files(source)


def test_whatever_a_library_raises_is_one_line() -> None:
    class PanicException(BaseException):
        """What a panic in Rust becomes."""

    for error in (KeyError("x"), RecursionError(), OSError(2, "a\nb"), PanicException("a\nb")):
        with (
            pytest.raises(TightropeError, match=r"^mine: .*; save it again$"),
            in_foreign_files("mine", "save it again"),
        ):
            raise error
    with pytest.raises(KeyboardInterrupt), in_foreign_files("mine", "save it again"):
        raise KeyboardInterrupt


def test_an_error_sends_no_control_characters_to_the_terminal() -> None:
    assert str(TightropeError("a\x1b[31m\nb\u202e\ud800é")) == "a\\x1b[31m\\nb\\u202e\\ud800é"
    assert printable("naïve 猫") == "naïve 猫"

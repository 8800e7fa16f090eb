"""The exported file; its answers at every shape are judged by tests/engines/test_parity.py."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tightrope.errors import in_one_line
from tightrope.onnx.export import export_onnx
from tiny_model import TinyModel
from transformers.models.bert.modeling_bert import BertPooler


def test_no_path_of_this_machine_is_in_the_bytes(repository: Path, tiny: TinyModel) -> None:
    places = [tiny.onnx.parent, repository, Path(sys.prefix), Path.home()]
    places += [Path("site-packages"), Path("modeling_bert.py")]
    for path in (tiny.onnx, tiny.simplified, tiny.u8s8, tiny.s8s8):
        content = path.read_bytes()
        assert not [str(place) for place in places if str(place).encode() in content]


def test_a_failed_export_has_the_sentence_of_its_cause(tiny, tmp_path, monkeypatch) -> None:
    def branching(self: Any, hidden: torch.Tensor) -> torch.Tensor:
        return hidden[:, 0] if hidden.sum() > 0 else hidden[:, 1]

    monkeypatch.setattr(BertPooler, "forward", branching)
    with pytest.raises(Exception, match=r"data-dependent") as error:
        export_onnx(tiny.checkpoint, tmp_path / "model.onnx", threads=1)
    said = in_one_line(error.value)
    assert "\x1b" not in said
    assert "step" not in said

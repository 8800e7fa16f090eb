"""Models that others bring answer as in transformers, one text at a time, or are refused."""

import io
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas
import pytest
import torch
from checkpoints import make_checkpoint
from onnx import numpy_helper
from onnx_text import drawn, onnx_model
from safetensors.torch import load_file, save_file
from splits import prepare_splits
from tightrope.artifacts.files import write_json
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import stack
from tightrope.inputs.encode import load_encoder
from tightrope.model.classifier import load_classifier
from tightrope.model.module import load_module
from tightrope.onnx.imported import original_outputs
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [a + b + c for a in "bdfgklmn" for b in "aeiou" for c in "rstz"]
VOCABULARY = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
NAMES = ("input_ids", "attention_mask", "token_type_ids", "pixel_values")
LONGEST = 16
TOKENIZER = "tokenizer.json"


def save_tokenizer(folder: Path, **settings: Any) -> None:
    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / TOKENIZER))
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    kind = {"tokenizer_class": "PreTrainedTokenizerFast"}
    write_json(folder / "tokenizer_config.json", {**named, **kind, **settings})


def bring(
    folder: Path, *, words: int = 6, classes: int = 2, positions: int = 64, **kind: Any
) -> Any:
    """Save a BERT whose outputs have no names; its answers to texts, each alone, as a table."""
    save_tokenizer(folder, **kind)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 64, "vocab_size": len(VOCABULARY)}
    sizes |= {"max_position_embeddings": positions, "num_labels": classes}
    model = BertForSequenceClassification(BertConfig(**sizes, initializer_range=0.3)).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    draw = random.Random(0)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(3, words))) for _ in range(300)]
    cut = {"truncation": True, "max_length": LONGEST, "return_tensors": "pt"}
    with torch.inference_mode():
        logits = torch.cat([model(**tokenizer(text, **cut)).logits for text in texts])
    model.classifier.bias.data -= logits.mean(0)  # each class is the answer to some text
    model.save_pretrained(folder)
    return pandas.DataFrame({"text": texts, "label": (logits - logits.mean(0)).argmax(1).numpy()})


def export(folder: Path) -> onnx.ModelProto:
    """The ONNX file of the BERT in the folder, as most exporters of it write it."""
    model = BertForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
    ids, names = torch.ones(2, 8, dtype=torch.int64), ["input_ids", "attention_mask"]
    file = io.BytesIO()
    axes = {name: {0: "batch", 1: "sequence"} for name in names} | {"logits": {0: "batch"}}
    options = {"input_names": names, "output_names": ["logits"], "dynamo": False}
    torch.onnx.export(model, (ids, ids), file, dynamic_axes=axes, **options)
    return onnx.load_from_string(file.getvalue())


def accuracy(folder: Path, table: Path, *, file: bool, said: str = "") -> float:
    """The share of all texts that the prepared model answers as their labels say, in batches.

    These words are said of how outputs and labels are matched.
    """
    checkpoint = f"onnx:{folder}/model.onnx" if file else f"path:{folder}"
    data, told = folder / "data/data.json", io.StringIO()
    columns, sizes = {"text": "text", "label": "label"}, {"train": 8, "evaluation": 200}
    prepare_splits(data, source=f"files:{table}", splits=sizes, pool=40, columns=columns, seed=0)
    inputs = dict(zip(NAMES, NAMES, strict=True))
    kept = make_checkpoint(folder / "made", checkpoint, data, inputs=inputs, terminal=told)
    first = "output 0" if file else "LABEL_0"
    assert f"outputs and labels are matched by order: {first} = 0, " in told.getvalue()
    assert said in told.getvalue() and bool(said) is ("examples" in told.getvalue())
    (part,) = data.parent.glob("*.jsonl")
    rows = [json.loads(line) for line in part.read_text().splitlines()]
    encoded = load_encoder(kept, max_sequence=LONGEST)(rows)
    batches = [stack(encoded[start : start + 16]) for start in range(0, len(rows), 16)]
    if file:
        found = original_outputs(kept, batches, threads=1)
    else:
        module = load_module(kept.parent, torch.float32)
        tensors = [{name: torch.from_numpy(one) for name, one in each.items()} for each in batches]
        with torch.inference_mode():
            found = [module(**one).logits.numpy() for one in tensors]
    assert len(rows) > 250
    return float(np.mean(np.concatenate(found).argmax(1) == [row["label"] for row in rows]))


def as_json_lines(folder: Path, rows: Any) -> Path:
    rows.astype(str).to_json(folder / "texts.jsonl", orient="records", lines=True)
    return folder / "texts.jsonl"


def as_csv(folder: Path, rows: Any) -> Path:
    rows.to_csv(folder / "texts.csv", index=False)
    return folder / "texts.csv"


@pytest.mark.parametrize(
    ("brought", "write", "file"),
    [
        ({"classes": 12}, as_json_lines, False),
        ({"classes": 12}, as_json_lines, True),
        ({"classes": 12}, as_csv, False),
        ({"words": 40, "truncation_side": "left"}, as_csv, False),
        ({"words": 40, "truncation_side": "left"}, as_csv, True),
        ({"words": 40}, as_csv, False),
    ],
)
def test_every_answer_is_that_of_transformers_to_the_text_alone(brought, write, file, tmp_path):
    rows = bring(tmp_path, **brought)
    if file:
        onnx.save(export(tmp_path), tmp_path / "model.onnx")
    form = {"return_dict": False, "output_attentions": True}
    write_json(tmp_path / "config.json", json.loads((tmp_path / "config.json").read_text()) | form)
    assert accuracy(tmp_path, write(tmp_path, rows), file=file) == 1.0


UNMASKED = """
m (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask)
=> (float[batch, 2] logits) {
    embedded = Gather(table, input_ids)
    mean = ReduceMean<keepdims = 0>(embedded, axes)
    logits = MatMul(mean, weight)
}"""


@pytest.fixture(scope="module")
def brought(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The usual model with its texts, and its ONNX file; to be copied."""
    folder = tmp_path_factory.mktemp("brought")
    as_csv(folder, bring(folder))
    onnx.save(export(folder), folder / "model.onnx")
    return folder


def change_tokenizer(folder: Path, change: Callable[[Tokenizer], object]) -> None:
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    change(tokenizer)
    tokenizer.save(str(folder / TOKENIZER))


def change_texts(folder: Path, change: Callable[[Any], Any]) -> None:
    """Of the column with the texts."""
    table = pandas.read_csv(folder / "texts.csv")
    as_csv(folder, table.assign(text=change(table["text"])))


def token_beyond_the_table(folder: Path) -> None:
    word = WORDS[0] + WORDS[1]
    change_tokenizer(folder, lambda tokenizer: tokenizer.add_tokens([word]))
    change_texts(folder, lambda texts: texts.replace(texts[7], word))


def tokenizer_of_another_model(folder: Path) -> None:
    change_texts(folder, lambda texts: texts + " a word of another language")


def sentencepiece_alone(folder: Path) -> None:
    (folder / TOKENIZER).rename(folder / "spm.model")


def weights_in_half(folder: Path) -> None:
    model = onnx.load(folder / "model.onnx")
    for tensor in model.graph.initializer:
        if tensor.name.endswith("word_embeddings.weight"):
            half = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(half, "half"))
            model.graph.node.insert(0, onnx.helper.make_node("Cast", ["half"], [tensor.name], to=1))
            model.graph.node[0].output[0] = "bert.embeddings.word_embeddings.weight"
    onnx.save(model, folder / "model.onnx")


def mask_not_used(folder: Path) -> None:
    axes = np.array([1])
    model = onnx_model(UNMASKED, table=drawn(len(VOCABULARY), 8), weight=drawn(8, 2), axes=axes)
    onnx.save(model, folder / "model.onnx")


def batch_counts(folder: Path) -> None:
    model = onnx.load(folder / "model.onnx")
    model.graph.output[0].name = "centered"
    mean = onnx.helper.make_node("ReduceMean", ["logits", "first"], ["mean"])
    model.graph.initializer.append(numpy_helper.from_array(np.array([0]), "first"))
    model.graph.node.extend([mean, onnx.helper.make_node("Sub", ["logits", "mean"], ["centered"])])
    onnx.save(model, folder / "model.onnx")


def other_tokens_in_transformers(folder: Path) -> None:
    """Its classes do not lower the case of texts if tokenizer_config.json says so."""
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    kind = {"tokenizer_class": "BertTokenizer", "do_lower_case": False}
    named = {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[UNK]"}
    write_json(folder / "tokenizer_config.json", {**settings, **kind, **named})
    change_tokenizer(folder, lambda one: setattr(one, "normalizer", normalizers.Lowercase()))
    change_texts(folder, lambda texts: texts.str.upper())


def weights_changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return changed


def special_tokens_beyond(folder: Path) -> None:
    save_tokenizer(folder, tokenizer_class="RobertaTokenizer")


def followed_by(operator: str, domain: str = "") -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        model = onnx.load(folder / "model.onnx")
        model.opset_import.append(onnx.helper.make_opsetid("of.mine", 1))
        model.graph.output[0].name = "probabilities"
        node = onnx.helper.make_node(operator, ["logits"], ["probabilities"], domain=domain)
        model.graph.node.append(node)
        onnx.save(model, folder / "model.onnx")

    return changed


HEAD, LORA = "classifier.weight", "bert.encoder.layer.0.attention.self.query.lora_A.weight"
NAN = weights_changed(lambda weights: weights[HEAD].fill_(float("nan")))
ADAPTED = weights_changed(lambda weights: weights.update({LORA: torch.ones(2, 32)}))
WIDER = weights_changed(lambda weights: weights.update({HEAD: torch.ones(3, 32)}))
BYTES = weights_changed(lambda weights: weights.update({HEAD: torch.ones(2, 32).to(torch.int8)}))
RENAMED = weights_changed(
    lambda weights: [weights.update({f"module.{name}": weights.pop(name)}) for name in [*weights]]
)


def config_with(**fields: Any) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        file = folder / "config.json"
        write_json(file, {**json.loads(file.read_text()), **fields})
        table = pandas.read_csv(folder / "texts.csv").replace({"label": {0: "happy", 1: "anger"}})
        as_csv(folder, table)

    return changed


@pytest.mark.parametrize("file", [False, True])
def test_an_order_of_outputs_that_surely_answers_better_is_told(file: bool, tmp_path: Path) -> None:
    table = as_csv(tmp_path, bring(tmp_path).replace({"label": {0: 1, 1: 0}}))
    if file:
        onnx.save(export(tmp_path), tmp_path / "model.onnx")
    said = "of 64 examples 0 have the right answer, 64 would with labels: [1, 0]; set that key"
    assert accuracy(tmp_path, table, file=file, said=said) == 0.0


def test_outputs_with_names_need_no_labels(tmp_path: Path) -> None:
    bring(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    write_json(tmp_path / "config.json", {**config, "id2label": {"0": "bad", "1": "good"}})
    data = tmp_path / "data/a.json"
    sizes = {"train": None, "evaluation": 8}
    prepare_splits(data, source="random", columns={}, splits=sizes, pool=8, seed=0)
    made = json.loads(make_checkpoint(tmp_path / "made", f"path:{tmp_path}", data).read_text())
    assert (made["labels"], made["matched"], made["reference"]) == (["bad", "good"], None, 0)


MOVED = {"id2label": {"0": "joy", "1": "anger"}}


def few_positions(folder: Path) -> None:
    bring(folder, positions=LONGEST - 1)
    onnx.save(export(folder), folder / "model.onnx")


@pytest.mark.parametrize(
    ("change", "file", "said"),
    [
        (token_beyond_the_table, False, "'barbas' the id 164, the embedding table .* has 164 rows"),
        (token_beyond_the_table, True, "'barbas' the id 164, the embedding table .* has 164 rows"),
        (tokenizer_of_another_model, False, r"tokenizer.json does not know 5\d% of the tokens"),
        (sentencepiece_alone, False, r"has spm.model but no tokenizer.json"),
        (sentencepiece_alone, True, r"has spm.model but no tokenizer.json"),
        (weights_in_half, True, r"has weights in half precision \(half\); give the file"),
        (mask_not_used, True, r"padding changes its answers: logits of .* differ by"),
        (batch_counts, True, "other examples of a batch change its answers: logits of"),
        (other_tokens_in_transformers, True, "gives '.*' as token 2 of '.*', transformers '.UNK.'"),
        (NAN, False, "its logits are no numbers"),
        (ADAPTED, False, "layers or adapters that config.json has not: bert.encoder.*lora_A"),
        (config_with(id2label={"1": "a", "2": "b"}), False, "does not name outputs 0 to 1; corr"),
        (config_with(**MOVED), False, "its output 1 is 'anger', label 0 of the data; list its na"),
        (BYTES, False, "has quantized weights; give it in float"),
        (WIDER, False, "has other sizes than config.json for classifier.weight; save it again"),
        (special_tokens_beyond, False, "the embedding table of the model has 164 rows"),
        (lambda folder: (folder / TOKENIZER).unlink(), True, "has no tokenizer.json; write it"),
        (followed_by("Softmax"), True, r"is probabilities \(Softmax\); export the logits"),
        (followed_by("Magic", "of.mine"), True, "ONNX Runtime cannot run it: .*; export it again"),
        (few_positions, True, r"takes 15 tokens, max_sequence is 16; lower it"),
    ],
)
def test_what_would_be_misread_is_refused_in_one_line(change, file, said, brought, tmp_path):
    left = shutil.ignore_patterns() if file else shutil.ignore_patterns("*.onnx")
    shutil.copytree(brought, tmp_path, ignore=left, dirs_exist_ok=True)
    change(tmp_path)
    with pytest.raises(TightropeError, match=said):
        accuracy(tmp_path, tmp_path / "texts.csv", file=file)


def test_a_new_head_is_put_on_no_random_model(brought: Path, tmp_path: Path) -> None:
    shutil.copytree(brought, tmp_path, dirs_exist_ok=True)
    RENAMED(tmp_path)
    kind: dict[str, Any] = {"source": "path:m", "task": "text-classification", "seed": 0}
    with pytest.raises(TightropeError, match=r"^path:m: .* lacks the weights bert\.embeddings"):
        load_classifier(tmp_path, labels=["a", "b", "c"], new_head=True, **kind)

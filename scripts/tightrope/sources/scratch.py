"""Architectures with random weights, and a tokenizer for them: for tests and latency only."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import yaml

from tightrope.errors import ConfigError

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = 8000


def parse_architecture(source: str, place: str) -> tuple[str, dict[str, Any]]:
    """Read `bert?hidden_size=32&num_hidden_layers=2`: the model type, and fields of its config."""
    model_type, _, words = place.partition("?")
    try:
        fields = parse_qsl(words, strict_parsing=True) if words else []
    except ValueError as error:
        raise ConfigError(f"{source}: sizes are written like ?hidden_size=32&...") from error
    return model_type, {name: yaml.safe_load(value) for name, value in fields}


def write_random_model(source: str, place: str, folder: Path, *, seed: int) -> None:
    """Write config.json and model.safetensors of the architecture, weights drawn by `seed`."""
    import torch
    from transformers import AutoConfig, AutoModel

    model_type, sizes = parse_architecture(source, place)
    try:
        config = AutoConfig.for_model(model_type)
    except ValueError as error:
        raise ConfigError(f"{source}: transformers knows no architecture {model_type!r}") from error
    unknown = [name for name in sizes if not hasattr(config, name)]
    if unknown:
        raise ConfigError(f"{source}: the config of {model_type} has no {', '.join(unknown)}")
    torch.manual_seed(seed)
    try:
        model = AutoModel.from_config(AutoConfig.for_model(model_type, **sizes))
    except Exception as error:  # each config and model checks its sizes in a way of its own
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"{source}: these sizes make no model ({reason})") from error
    model.save_pretrained(folder)


def train_tokenizer(texts: Iterable[str], *, vocabulary: int) -> Any:
    """A lower-casing WordPiece `tokenizers.Tokenizer` of at most `vocabulary` tokens.

    Its tokens are the characters of the texts and then the commonest words. The trainers of
    `tokenizers` are not used: what they learn differs from run to run.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    characters = sorted({character for word in counts for character in word})
    words = sorted(counts, key=lambda word: (-counts[word], word))
    pieces = [*SPECIAL_TOKENS, *characters, *(f"##{one}" for one in characters), *words]
    kept = list(dict.fromkeys(pieces))[: min(vocabulary, VOCABULARY)]
    model = models.WordPiece({piece: i for i, piece in enumerate(kept)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer

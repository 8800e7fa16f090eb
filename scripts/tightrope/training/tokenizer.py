"""Tokenizer of a text classifier: from its checkpoint, or trained on its texts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tightrope.errors import TightropeError, in_foreign_files
from tightrope.inputs.encode import Example

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = 8000

SPECIAL = dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL_TOKENS, strict=True))


def load_tokenizer(
    source: Path, name: str, examples: Sequence[Example], config: Any, *, texts: bool
) -> Any:
    """Load the fast tokenizer next to `source`, else train one on the examples.

    Returns None without tokenizer files if the data are no `texts`, but random tokens.
    """
    files = [*source.parent.glob("*token*.json"), *source.parent.glob("vocab*")]
    if files or any(source.parent.glob("*.model")):
        with in_foreign_files(f"{name}: its tokenizer cannot be loaded", "save it again"):
            tokenizer = AutoTokenizer.from_pretrained(
                source.parent, trust_remote_code=False, use_fast=True
            )
        if not tokenizer.is_fast:
            raise TightropeError(
                f"{name}: has no tokenizer.json, and none can be made of its files"
            )
        return tokenizer
    if not texts:
        return None
    if not name.startswith("scratch:"):
        raise TightropeError(f"{name}: has no tokenizer; put its tokenizer.json into the folder")
    trained: Tokenizer = train_tokenizer(
        (example["text"] for example in examples), vocabulary=config.vocab_size
    )
    tokens = {f"{role}_token": token for role, token in SPECIAL.items()}
    return PreTrainedTokenizerFast(tokenizer_object=trained, **tokens)


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write the tokenizer, if any, without padding, truncation or a path of this machine."""
    if tokenizer is not None:
        tokenizer.name_or_path = ""
        tokenizer.backend_tokenizer.no_padding()
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.save_pretrained(folder)


def train_tokenizer(texts: Iterable[str], *, vocabulary: int) -> Any:
    """Train a lower-casing WordPiece `tokenizers.Tokenizer` of at most `vocabulary` tokens.

    The vocabulary is the characters of the texts, then the most frequent words. The trainers of
    `tokenizers` are not used, because their results differ from run to run.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    characters = sorted({character for word in counts for character in word})
    words = sorted(counts, key=lambda word: (-counts[word], word))
    pieces = [*SPECIAL_TOKENS, *characters, *(f"##{character}" for character in characters), *words]
    tokens = list(dict.fromkeys(pieces))[: min(vocabulary, VOCABULARY)]
    model = models.WordPiece({piece: i for i, piece in enumerate(tokens)}, unk_token="[UNK]")
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

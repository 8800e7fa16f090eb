"""A tokenizer made of the texts of a model that has none: for tests and latency only."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = 8000


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

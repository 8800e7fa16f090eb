"""The tokenizer of a text classifier: that of its checkpoint, or one trained on its texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tightrope.errors import TightropeError
from tightrope.inputs.timing_batches import Example
from tightrope.training.trained_tokenizer import SPECIAL_TOKENS, train_tokenizer

SPECIAL = dict(zip(("pad", "unk", "cls", "sep", "mask"), SPECIAL_TOKENS, strict=True))


def load_tokenizer(source: Path, name: str, examples: Sequence[Example], config: Any) -> Any:
    """The fast tokenizer beside `source`, else one trained on the examples; None for neither."""
    files = [*source.parent.glob("*token*.json"), *source.parent.glob("vocab*")]
    if files or any(source.parent.glob("*.model")):
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                source.parent, trust_remote_code=False, use_fast=True
            )
        except (ValueError, ImportError, OSError) as error:
            reason = " ".join(str(error).split())
            raise TightropeError(f"{name}: its tokenizer cannot be loaded ({reason})") from error
        if not tokenizer.is_fast:
            raise TightropeError(
                f"{name}: has no tokenizer.json, and none can be made of its files"
            )
        return tokenizer
    if not len(examples):
        return None
    if not name.startswith("scratch:"):
        raise TightropeError(f"{name}: has no tokenizer; put its tokenizer.json into the folder")
    trained: Tokenizer = train_tokenizer(
        (example["text"] for example in examples), vocabulary=config.vocab_size
    )
    tokens = {f"{role}_token": token for role, token in SPECIAL.items()}
    return PreTrainedTokenizerFast(tokenizer_object=trained, **tokens)


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Write it, where there is one, without padding, a limit, or a path of this machine."""
    if tokenizer is not None:
        tokenizer.name_or_path = ""
        tokenizer.backend_tokenizer.no_padding()
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.save_pretrained(folder)

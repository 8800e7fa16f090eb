"""From texts to the inputs of the engine."""

import numpy as np
from tokenizers import Tokenizer


def load_request(folder, facts):
    """Return batches(texts), which yields indices and inputs, int64 [batch, tokens].

    Texts are cut at `longest` tokens, on the side `cut`. Those of similar length are in one batch,
    of at most `batch` texts, padded with zeros up to its longest.
    """
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(facts["longest"], direction=facts["cut"])

    def batches(texts):
        rows = [one.ids for one in tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(rows)), key=lambda row: -len(rows[row]))
        for start in range(0, len(order), facts["batch"]):
            indices = order[start : start + facts["batch"]]
            shape = len(indices), len(rows[indices[0]])
            ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
            for line, index in enumerate(indices):
                ids[line, : len(rows[index])] = rows[index]
                mask[line, : len(rows[index])] = 1
            yield indices, {"input_ids": ids, "attention_mask": mask}

    return batches

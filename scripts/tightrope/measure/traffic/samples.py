"""What LoadGen sends, ready before the clock starts: encoded texts, or decoded images."""

from collections.abc import Sequence

from tqdm import tqdm

from tightrope.inputs.timing_batches import PIXELS, Arrays

# what the decoded images of one engine may take: 1783 of 3 x 224 x 224
IMAGE_BYTES = 2**30


def ready_samples(rows: Sequence[Arrays], *, image_bytes: int) -> list[Arrays]:
    """All encoded texts, or as many images, each decoded now, as `image_bytes` hold; at least one.

    Those are the first of a split, in which every first n hold the labels in proportion.
    """
    if PIXELS not in rows[0]:
        return list(rows)
    held = max(1, image_bytes // rows[0][PIXELS].nbytes)
    return list(tqdm(rows[:held], desc="decoding"))

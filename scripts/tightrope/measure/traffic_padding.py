"""Padded lengths of batches, and length buckets chosen from the lengths of the data."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from tightrope.errors import TightropeError

# the padding of images, which all have one size
UNPADDED = "none"


def bucket_edges(lengths: Iterable[int], count: int) -> list[int]:
    """Return the `count` edges, ascending, that minimize the padded tokens over all `lengths`.

    A length is padded to the smallest edge that is not shorter; the last edge is the longest
    length. Fewer distinct lengths give fewer edges. The solution is exact: optimal partition of a
    sorted line by dynamic programming (Fisher 1958, "On Grouping for Maximum Homogeneity"; Wang and
    Song 2011, "Ckmeans.1d.dp"), in O(count * distinct lengths squared). Raises TightropeError for
    no lengths or a `count` below 1.
    """
    histogram = sorted(Counter(lengths).items())
    if not histogram or count < 1:
        raise TightropeError(
            f"{count} buckets for {len(histogram)} distinct lengths: at least one of each is needed"
        )
    edges = [length for length, _ in histogram]
    samples = [0, *accumulate(number for _, number in histogram)]  # of the n shortest lengths

    def tokens(start: int, end: int) -> int:
        return edges[end - 1] * (samples[end] - samples[start])

    # tokens and edges of the best partition of the n shortest lengths; each iteration adds a bucket
    best: list[tuple[int, list[int]]] = [(0, [])]
    best += [(tokens(0, end), [edges[end - 1]]) for end in range(1, len(edges) + 1)]
    for _ in range(min(count, len(edges)) - 1):
        finer = best[:1]
        for end in range(1, len(best)):
            total, start = min((best[start][0] + tokens(start, end), start) for start in range(end))
            finer.append((total, [*best[start][1], edges[end - 1]]))
        best = finer
    return best[-1][1]


def padded_lengths(
    padding: str, lengths: Sequence[int], *, max_sequence: int, edges: Sequence[int]
) -> list[int | None]:
    """Return the padded length of each sample in tokens; None: the longest of its batch.

    `fixed`: `max_sequence`; `longest` and, of images, `none`: None; `bucketed`: the smallest of the
    ascending `edges` that is not shorter. Raises TightropeError for a length beyond the last.
    """
    if padding == "fixed":
        return [max_sequence] * len(lengths)
    if padding != "bucketed":
        return [None] * len(lengths)
    if (longest := max(lengths)) > edges[-1]:
        raise TightropeError(
            f"{longest} tokens: the buckets hold 1 to {edges[-1]}; choose edges from all lengths"
        )
    return [edges[bisect_left(edges, length)] for length in lengths]

"""A variant under real traffic: MLCommons LoadGen sends queries, dynamic batching serves them.

The paddings share one loaded engine and alternate in rounds, so that a gain has an interval.
"""

import statistics
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import Annotated, Any, Literal, NamedTuple, get_args

import msgspec

from tightrope.config.types import DISTINCT, Count, Positive, Size
from tightrope.machine.interference import MAX_FOREIGN_CORES
from tightrope.records.record import disturbed_while
from tightrope.statistics import Interval, SpeedVerdict, speed_verdict, speedup
from tightrope.studies import study
from tightrope.studies.study import Bench, Column, Estimate, Study, StudyRecord

Scenario = Literal["single_stream", "offline", "server"]
Padding = Literal["fixed", "longest", "bucketed"]
# with which the others are compared; the padding of images, which all have one size
FIXED, UNPADDED = "fixed", "none"
LOADGEN = "mlcommons-loadgen"
NAMES = ("single stream", "offline", "server")
# fewest rounds that count for a number
FEWEST_ROUNDS = 3
# logit margin up to which floating-point error alone can change the prediction
TIE = 1e-3


class Settings(study.Settings, frozen=True):
    """Which scenarios, with which paddings, and for how long."""

    scenarios: Annotated[tuple[Scenario, ...], DISTINCT] = get_args(Scenario)
    """Of LoadGen."""
    padding: Annotated[tuple[Padding, ...], DISTINCT] = get_args(Padding)
    """Texts; to max_sequence, to the longest of a batch, or to the edge of a bucket of lengths."""
    batch: Size = 32
    """Largest dynamic batch."""
    buckets: Count = 4
    """Buckets of lengths of texts."""
    seconds: Positive = 5.0
    """Of a test of server at least; of single stream and offline about so long for each padding,
    over three rounds; those of offline go on up to twice that until the gains are known."""
    p99_bound_s: Positive = 0.1
    """Server; the highest rate whose 99th percentile stays below this latency is searched."""


class Sent(msgspec.Struct, kw_only=True, tag_field="call", tag="sent"):
    """The `samples` that are sent, the first of `of` in the split.

    All texts, or as many images as fit, decoded, in the memory for them. Of texts `lengths` are the
    tokens of each, `edges` those of the length buckets (empty where not asked for), `longest` the
    length that padding `fixed` pads to.
    """

    samples: int
    of: int
    lengths: list[int] = []
    edges: list[int] = []
    longest: int | None = None


class Rehearsal(msgspec.Struct, kw_only=True, tag_field="call", tag="rehearsal"):
    """What serving without LoadGen shows of a padding, to size its tests.

    Seconds of the shortest and of one of the longest samples alone, and samples per second. With
    the scenario `offline` also the predictions of all samples in the order of the split, and their
    margins, the highest logit minus the second.
    """

    padding: str
    short_s: float
    long_s: float
    samples_per_s: float
    predictions: list[int] = []
    margins: list[float] = []


class LoadGenTest(msgspec.Struct, kw_only=True, tag_field="call"):
    """A test of LoadGen; `valid` is its verdict, `logs` the sha256 of its files.

    A round has a test of each padding, another one first each time; rounds are counted from 1.
    `foreign_cores` are those that other programs used meanwhile. Paths are relative to the record.
    """

    padding: str
    round: int
    duration_s: float
    valid: bool
    foreign_cores: float
    logs: dict[str, str] = {}


class SingleStream(LoadGenTest, kw_only=True, tag="single_stream"):
    """Queries one at a time."""

    queries: int
    p50_s: float
    p90_s: float
    p99_s: float


class Offline(LoadGenTest, kw_only=True, tag="offline"):
    """All samples queued at once: in each test the same ones, all or some of those that are sent.

    They are sent once or several times. `tokens` are those of the samples, `padded_tokens` those
    that padding added; both 0 of images.
    """

    samples: int
    samples_per_s: float
    batches: int
    tokens: int = 0
    padded_tokens: int = 0


class Server(LoadGenTest, kw_only=True, tag="server"):
    """Queries at random times (Poisson), on average `target_per_s`: a rate of the search.

    `late` is the number of queries over the bound; `valid`: p99 within it at confidence 0.99.
    """

    target_per_s: float
    issued_per_s: float
    p99_s: float
    queries: int
    late: int


Call = Sent | Rehearsal | SingleStream | Offline | Server


class Row(study.Row, kw_only=True):
    """Rates and tail latencies with one kind of padding; None for what was not measured.

    `reason` says of which of the scenarios but the server too few rounds were valid, without other
    load.
    """

    padding: Annotated[str, Column("Padding", "text")]
    """`fixed`, `longest` (to the longest of the batch), `bucketed` (to the end of the bucket); for
    images `none`."""
    samples_per_s: Annotated[float | None, Column("Offline, samples/s", "rate")] = None
    """LoadGen's Offline: the median over rounds, None with fewer than three valid, undisturbed
    ones."""
    gain: Annotated[Estimate | None, Column("Gain over|fixed", "ratio", verdict="gain_verdict")] = (
        None
    )
    """The Offline throughput over that of `fixed`, from the ratio of each round; None without
    enough rounds and for images."""
    gain_verdict: SpeedVerdict | None = None
    """None for `fixed` itself."""
    padding_gain: Annotated[float | None, Column("Gain by|padding alone", "ratio")] = None
    """The tokens of a sample with `fixed` over those with this padding, padding included: the gain
    of an engine whose time is proportional to the tokens. None without an Offline test and for
    images."""
    padding_share: Annotated[float | None, Column("Padding, % of all tokens", "percent")] = None
    """Padded tokens over all tokens; None where `padding_gain` is."""
    single_stream_p90_s: Annotated[float | None, Column("Single stream p90, ms", "ms")] = None
    single_stream_p99_s: float | None = None
    """Medians over rounds, as of `samples_per_s`."""
    server_per_s: Annotated[float | None, Column("Server, queries/s", "rough rate")] = None
    """Queries per second at the highest rate whose p99 stays under the bound, None without one."""
    server_p99_s: float | None = None
    """At that rate."""
    changed: Annotated[int | None, Column("Changed|answers", "count")] = None
    """Predictions that differ from those of `fixed`, without ties; None without both."""
    ties_changed: Annotated[int | None, Column("Changed|ties", "count")] = None
    """Those that differ where the two highest logits of `fixed` are within 0.001."""
    server_reason: Annotated[str | None, Column("Why no rate", "text")] = None
    """Why there is no `server_per_s`, where the scenario was measured."""
    samples: int
    """How many of the split `timing` were sent; for images the first ones that fit decoded in 1
    GiB."""
    batch: int
    """The largest."""
    p99_bound_s: float
    """Of the server."""
    edges: list[int]
    """The upper edge of each bucket in tokens; empty without `bucketed`."""
    longest: int | None
    """Tokens to which `fixed` pads; None for images."""


def measure(bench: Bench, settings: Settings) -> Iterator[Call]:
    """Yield what is sent, a rehearsal of each padding, and the tests of each scenario."""
    # here: neither what plans nor what reports needs LoadGen
    from tightrope.studies.loadgen import LoadGen
    from tightrope.studies.scenarios import Scenarios

    with bench.serving(partial(LoadGen, settings, bench.folder)) as worker:
        sent, bench.shape = worker.ask("load")
        yield sent
        rehearsals = []
        for padding in settings.padding if sent.lengths else (UNPADDED,):
            rehearsals.append(worker.ask("rehearse", padding))
            yield rehearsals[-1]
        yield from Scenarios(bench, worker, settings, sent, rehearsals).run()


class Counted(NamedTuple):
    """The tests of a scenario that count, by padding, and in how many of its rounds no test was
    invalid (`valid`), or disturbed as well (`quiet`).

    `disturbed` says whether these are too few because of other load, of up to `cores` cores.
    """

    tests: dict[str, list[Any]]
    disturbed: bool
    cores: float
    rounds: int = 0
    valid: int = 0
    quiet: int = 0


def in_rounds(calls: Iterable[Any], kind: type[LoadGenTest], *, accept: bool = False) -> Counted:
    """Return the tests of a scenario in the rounds that count, none if these are too few.

    These are the rounds whose tests are all valid, and none of them disturbed by other load. With
    `accept` disturbed rounds count where the others are too few.
    """
    rounds: dict[int, list[Any]] = {}
    for one in calls:
        if isinstance(one, kind):
            rounds.setdefault(one.round, []).append(one)
    valid = [tests for tests in rounds.values() if all(one.valid for one in tests)]
    quiet = [tests for tests in valid if most_cores(tests) <= MAX_FOREIGN_CORES]
    few = len(quiet) < min(FEWEST_ROUNDS, len(valid))
    counting = valid if few and accept else quiet
    tests = [*chain(*counting)] if len(counting) >= FEWEST_ROUNDS else []
    by_padding: dict[str, list[Any]] = {}
    for one in tests:
        by_padding.setdefault(one.padding, []).append(one)
    cores = most_cores(chain(*rounds.values()))
    return Counted(by_padding, few, cores, len(rounds), len(valid), len(quiet))


def searched(calls: Iterable[Any], padding: str, *, accept: bool) -> Counted:
    """Return the rates of the server that were tried with a padding.

    Those of which other load disturbed one count with `accept` alone.
    """
    rates = [one for one in calls if isinstance(one, Server) and one.padding == padding]
    loud = most_cores(rates) > MAX_FOREIGN_CORES
    tests = {} if loud and not accept else {padding: rates}
    return Counted(tests, loud, most_cores(rates))


def most_cores(tests: Iterable[LoadGenTest]) -> float:
    """Return the most cores that other programs used in one of these tests."""
    return max((one.foreign_cores for one in tests), default=0.0)


def gain_over_fixed(offline: Counted, padding: str) -> Interval | None:
    """Return how many times the samples per second of padding `fixed` a padding has.

    From the ratio of each round, see `statistics.speedup`; the two share one loaded engine. None
    without enough rounds of both.
    """
    if not {padding, FIXED} <= offline.tests.keys():
        return None
    if padding == FIXED:
        return Interval(1.0, 1.0, 1.0)
    own, fixed = (
        [[1 / test.samples_per_s] for test in offline.tests[name]] for name in (padding, FIXED)
    )
    return speedup(own, fixed, loads=1)


def rows(record: StudyRecord, accept: bool) -> list[Row]:
    """Return a row per padding; values without enough valid and undisturbed rounds are None."""
    rounds = [in_rounds(record.calls, kind, accept=accept) for kind in (SingleStream, Offline)]
    paddings = [one.padding for one in record.calls if isinstance(one, Rehearsal)]
    return [
        row(record, one, [*rounds, searched(record.calls, one, accept=accept)], accept)
        for one in paddings
    ]


def row(record: StudyRecord, padding: str, counted: Sequence[Counted], accept: bool) -> Row:
    """Return the row of a padding from the tests of single stream, offline and server."""
    calls, bound_s = record.calls, record.settings["p99_bound_s"]
    known = {one.padding: one for one in calls if isinstance(one, Rehearsal)}
    alone, together, rates = (one.tests.get(padding, []) for one in counted)
    gain = gain_over_fixed(counted[1], padding)
    own, fixed = tokens_of(calls, padding), tokens_of(calls, FIXED)
    valid = [one for one in rates if one.valid]
    best = max(valid, key=lambda one: one.target_per_s, default=None)
    vain = "server" in record.settings["scenarios"] and padding in counted[2].tests and not best
    changed, ties = changes(known.get(FIXED), known[padding])
    disturbed = why_disturbed(counted, record.busiest)
    invalid = [
        f"{name} ({one.valid} of {one.rounds} rounds were valid, {FEWEST_ROUNDS} are needed)"
        for name, one in zip(NAMES, counted, strict=True)
        if one.rounds and not (one.tests or one.disturbed)
    ]
    return Row(
        padding=padding,
        calls=len(alone) + len(together) + len(rates),
        reason=" and ".join(invalid) or None,
        disturbed=disturbed,
        provisional=bool(disturbed and accept),
        samples_per_s=median([one.samples_per_s for one in together]),
        gain=Estimate.of(gain),
        gain_verdict=speed_verdict(gain) if gain and padding != FIXED else None,
        padding_gain=fixed[0] / own[0] if own and fixed else None,
        padding_share=own[1] if own else None,
        single_stream_p90_s=median([one.p90_s for one in alone]),
        single_stream_p99_s=median([one.p99_s for one in alone]),
        server_per_s=best.issued_per_s if best else None,
        server_p99_s=best.p99_s if best else None,
        server_reason=why_no_rate(rates, known[padding], bound_s) if vain else None,
        changed=changed,
        ties_changed=ties,
        samples=calls[0].samples,
        batch=record.settings["batch"],
        p99_bound_s=bound_s,
        edges=calls[0].edges,
        longest=calls[0].longest,
    )


def why_disturbed(counted: Iterable[Counted], busiest: dict[str, float]) -> str | None:
    """Return which scenarios other load disturbed, None without any."""
    found = [pair for pair in zip(NAMES, counted, strict=True) if pair[1].disturbed]
    if not found:
        return None
    what = [
        f"{name} ({one.quiet} of {one.rounds} rounds were undisturbed, {FEWEST_ROUNDS} are needed)"
        if one.rounds
        else name
        for name, one in found
    ]
    return disturbed_while(" and ".join(what), max(one.cores for _, one in found), busiest)


def median(values: Sequence[float]) -> float | None:
    """Return the median, None without any."""
    return statistics.median(values) if values else None


def tokens_of(calls: Iterable[Any], padding: str) -> tuple[float, float] | None:
    """Return the mean tokens of a sample in offline tests, padding included, and padding's share.

    None without any such test, and for images.
    """
    tests = [one for one in calls if isinstance(one, Offline) and one.padding == padding]
    added = sum(one.padded_tokens for one in tests)
    tokens = sum(one.tokens for one in tests) + added
    return (tokens / sum(one.samples for one in tests), added / tokens) if tokens else None


def why_no_rate(rates: Sequence[Server], rehearsal: Rehearsal, bound_s: float) -> str:
    """Return why no rate of the server was valid."""
    if rates:
        lowest = min(rate.target_per_s for rate in rates)
        return f"p99 is over {bound_s:g} s even at {lowest:g} queries/s"
    one = "one image" if rehearsal.padding == UNPADDED else "one long sample"
    return f"{one} alone takes {rehearsal.long_s:.3g} s, the bound of p99 is {bound_s:g} s"


def changes(fixed: Rehearsal | None, own: Rehearsal) -> tuple[int | None, int | None]:
    """Count predictions that differ from those of `fixed`, with ties counted separately."""
    if fixed is None or not own.predictions:
        return None, None
    both = zip(fixed.predictions, own.predictions, fixed.margins, strict=True)
    margins = [margin for before, after, margin in both if before != after]
    changed = sum(margin > TIE for margin in margins)
    return changed, len(margins) - changed


def words(rows: Sequence[Row], record: StudyRecord) -> list[str]:
    """Say what was sent, and how it was answered."""
    sent: Sent = record.calls[0]
    lengths, row = sent.lengths, rows[0]
    if lengths:
        tokens = f"{min(lengths)} to {max(lengths)} tokens"
        what = f"{sent.samples:,} texts of {tokens}, each with its true length"
    else:
        some = f"the first {sent.samples:,} of {sent.of:,} images, as many as are held in memory"
        what = some if sent.samples < sent.of else f"{sent.samples:,} images"
        what += "; decoding them is not timed"
    found = [f"MLPerf LoadGen {record.libraries.get(LOADGEN, '')} sent {what}."]
    for low, high in pairwise([0, *sent.edges]):
        share = sum(low < one <= high for one in lengths) / len(lengths)
        found.append(f"{100 * share:.1f} % have {low + 1} to {high} tokens.")
    if sent.longest:
        found.append(f"Padding fixed takes all to {sent.longest} tokens.")
    threads = "1 thread" if record.threads == 1 else f"{record.threads} threads"
    found.append(
        f"Samples that wait are answered together, in batches of up to {row.batch}, with "
        f"{threads}; p99 of a server is to be within {1000 * row.p99_bound_s:g} ms."
    )
    return found


STUDY = Study(
    name="traffic",
    settings=Settings,
    call=Call,
    row=Row,
    rows=rows,
    about="Variants that are also measured under real traffic, with MLCommons LoadGen.",
    link="Real traffic",
    title="Under real traffic",
    lead=(
        "Offline: all samples wait from the start. Single stream: the next sample comes when the "
        "last is answered; p90 is the time within which 90 % are. Server: samples come at random "
        "times; counted is the most a second of which 99 % are answered within the bound. Padding "
        "fixed takes every text to the greatest number of tokens, longest each to the longest of "
        "its batch; bucketed answers texts of like length together, each to the end of its bucket."
    ),
    note=(
        "Offline and single stream are medians over rounds in which the paddings alternate. The "
        "gain is the mean of the ratios of the rounds, with its 95 % interval; a tie is within the "
        "noise. The gain by padding alone is the number of tokens with fixed over that with this "
        "padding: the gain of an engine whose time is proportional to tokens. The rates of a "
        "server are tried once each and have no interval: differences below a tenth may be chance. "
        "Changed answers are predictions other than with fixed; a tie, where the two best classes "
        "were within 0.001 of each other, is counted apart."
    ),
    words=words,
    libraries=(LOADGEN,),
)

"""The whole comparison of two reports."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tightrope.compare.accuracy import AccuracyChange, accuracy_changes
from tightrope.compare.differences import Difference, by_likelihood, differences, retuned, touched
from tightrope.compare.read import Entry, Key, Report, RowKey, Shape, with_calibrations_of
from tightrope.compare.speed import SpeedChange, speed_changes, with_remeasured
from tightrope.errors import TightropeError
from tightrope.report.style.numbers import shape_of
from tightrope.statistics import Interval

Remeasure = Callable[[Report, Report, Sequence[RowKey]], Mapping[RowKey, Interval | str]]
# what makes a machine another one; a GPU counts for what ran on it
MACHINE = ("cpu", "isa", "cores")
# kinds of differences by which the answers of an unchanged baseline may be others
OF_ANSWERS = ("library", "options", "checkpoint", "data")


@dataclass(frozen=True)
class Choice:
    """A recommendation that is another one; None where there was or is none."""

    model: str
    shape: Shape
    old: str | None
    new: str | None


@dataclass(frozen=True)
class Comparison:
    """What changed from the old report to the new one.

    `gone` are variants that had a result and have none, with the reason; `came` the other way
    round. `causes` are the differences, the likely cause first, each with whether it concerns
    a change beyond the noise.
    """

    old: Report
    new: Report
    speed: list[SpeedChange]
    accuracy: list[AccuracyChange]
    came: list[Key]
    gone: list[tuple[Key, str]]
    choices: list[Choice]
    causes: list[tuple[Difference, bool]]

    @property
    def moved(self) -> set[Key]:
        """The variants whose time or accuracy changed beyond the noise."""
        return moved(self.speed, self.accuracy)


def compare(
    old: Report, new: Report, *, across_hosts: bool = False, again: Remeasure | None = None
) -> Comparison:
    """Return the comparison; raise TightropeError for reports that cannot be compared.

    They need a model in common, and the same hosts unless `across_hosts`. `again` times rows side
    by side, see `remeasure`.
    """
    require_common(old, new)
    old = with_calibrations_of(new, old)
    measured = {key for key in ok(old) & ok(new)}
    if not across_hosts:
        require_hosts(old, new, measured)
    found = differences(old, new)
    speed = speed_changes(old, new, retuned(found))
    if again:
        speed = with_remeasured(speed, again(old, new, [one.row for one in speed]))
    accuracy = accuracy_changes(old, new, measured, with_same_baseline(new, measured, found))
    others = moved(speed, accuracy)
    return Comparison(
        old,
        new,
        speed,
        accuracy,
        came=sorted(ok(new) - ok(old)),
        gone=[(key, why_gone(new, key)) for key in sorted(ok(old) - ok(new))],
        choices=sorted(choices(old, new), key=lambda one: (one.model, one.shape)),
        causes=by_likelihood(found, others, measured - others),
    )


def moved(speed: list[SpeedChange], accuracy: list[AccuracyChange]) -> set[Key]:
    """Return the variants that changed beyond the noise."""
    found = {one.row.key for one in speed if one.verdict in ("slower", "faster")}
    return found | {one.key for one in accuracy if one.verdict in ("worse", "better")}


def ok(report: Report) -> set[Key]:
    """Return the variants that have a result."""
    return {key for key, result in report.results.items() if result["status"] == "ok"}


def require_common(old: Report, new: Report) -> None:
    """Raise TightropeError where the reports have no model in common."""
    models = [{key.model for key in one.results} for one in (old, new)]
    if not models[0] & models[1]:
        names = [", ".join(sorted(one)[:5]) or "none" for one in models]
        raise TightropeError(
            f"no model in common: {old.path} has {names[0]}, {new.path} has {names[1]}"
        )


def require_hosts(old: Report, new: Report, measured: set[Key]) -> None:
    """Raise TightropeError where some variant was measured on different hosts."""
    for key in sorted(measured):
        before, after = old.host_of(key), new.host_of(key)
        if before is None or after is None:
            raise TightropeError(f"{'/'.join(key)}: a report does not say on which host it ran")
        facts = (*MACHINE, "gpu") if key.variant.startswith("cuda") else MACHINE
        if name := next((one for one in facts if before.get(one) != after.get(one)), None):
            raise TightropeError(
                f"different hosts: {name} of {'/'.join(key)} was {words(before, name)} and is "
                f"{words(after, name)}; compare runs of one machine, or give --across-hosts"
            )


def words(host: Entry, name: str) -> str:
    """Format a fact of a host."""
    value = host.get(name)
    return " ".join(value) if isinstance(value, list) else str(value)


def with_same_baseline(new: Report, measured: set[Key], found: list[Difference]) -> set[Key]:
    """Return the variants with a baseline that was measured, and whose answers nothing changed."""
    other = touched(one for one in found if one.kind in OF_ANSWERS)
    bases = {key: Key(key.model, str(new.results[key].get("baseline"))) for key in measured}
    return {key for key, base in bases.items() if base in measured and base not in other}


def why_gone(new: Report, key: Key) -> str:
    """Return why a variant has no result any more."""
    result = new.results.get(key)
    if result is None:
        return "it is not in the new report"
    return f"{result['status']}: {result.get('reason') or 'without a reason'}"


def choices(old: Report, new: Report) -> Iterator[Choice]:
    """Yield the recommendations that are others, of the shapes that both reports have."""
    before, after = recommended(old), recommended(new)
    for place in before.keys() & after.keys():
        if before[place] != after[place]:
            yield Choice(place[0], place[2], before[place], after[place])


def recommended(report: Report) -> dict[tuple[str, str, Shape], str | None]:
    """Return the recommended variant by model, host and shape."""
    return {
        (one.get("model", ""), host_name(report, one), shape_of(one.get("shape") or {})): one.get(
            "variant"
        )
        for one in report.document.get("recommendations") or ()
    }


def host_name(report: Report, recommendation: Entry) -> str:
    """Return by what a host is the same one in another report: its name, else empty if alone."""
    key = str(recommendation.get("host"))
    return key if len(report.document["hosts"]) > 1 else ""

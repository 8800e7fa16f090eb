"""Search for int8-auto: the fewest operators in float that keep the accuracy budget."""

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.files import digest, sha256
from tightrope.artifacts.int8_types import Costs, Divergences
from tightrope.errors import ArtifactError
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.cache import read_cache
from tightrope.int8.calibrate import samples_sha256
from tightrope.int8.quantize import quantize_onnx
from tightrope.int8.switched_model import SwitchedModel
from tightrope.int8.trials import TrialEvaluator, TrialStore, labels_of, require_enough
from tightrope.onnx.file import require_onnx_of

SCHEMA = 1
# smallest saving in ms: operators that int8 does not speed up rank first
NOTHING = 1e-12


@dataclass(frozen=True, kw_only=True)
class SearchInputs:
    """Files of a search: the simplified ONNX model, its quantized one, and what was found on it."""

    onnx: Path | str
    quantized: Path | str
    calibration: Path | str
    sensitivity: Path | str
    costs: Path | str
    data: Path | str
    checkpoint: Path | str


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How to search.

    Trials are saved in `state`, from which an interrupted search resumes if `code` and `libraries`
    have not changed. The trials of all its sessions, except the first trial, take at most `seconds`
    in total. `smoothquant` is the strength at which the model is smoothed, None for no smoothing.
    """

    code: str
    smoothquant: float | None
    state: Path | str
    budget_points: float
    seconds: float
    max_sequence: int
    threads: int
    libraries: dict[str, str | None]


def search_operators(
    inputs: SearchInputs, target: Path | str, scheme: str, settings: SearchSettings
) -> None:
    """Write which operators stay in float in addition to SmoothQuant, and every trial.

    A trial holds if its accuracy on the whole calibration split is `kept` within the budget,
    compared with the same model in float. Without labels, an answer counts as correct if it is that
    of the float model. Raises TightropeError where the split is too small to decide whether a
    budget holds.
    """
    for path in (inputs.onnx, inputs.quantized):
        require_onnx_of(path, inputs.checkpoint)
    examples, budget_points = read_split(inputs.data), settings.budget_points
    require_enough(inputs.data, len(examples), budget_points)
    rows = load_encoder(inputs.checkpoint, max_sequence=settings.max_sequence)(examples)
    ranking = ranking_of(inputs)
    if not read_cache(inputs.calibration, model=inputs.onnx)["channels"]:
        settings = replace(settings, smoothquant=None)  # an imported cache has only ranges
    sources = sources_of(inputs)
    key = key_of(settings, sources, samples_sha256(examples), sha256(inputs.checkpoint))
    model, store = switched_model(inputs, scheme, settings), TrialStore(Path(settings.state), key)
    labels, budget = labels_of(examples), budget_points / 100
    judge = TrialEvaluator(model, rows, labels, budget, store, seconds=settings.seconds)
    in_float, stop = search(judge, [name for name, _ in ranking], settings.seconds)
    write_artifact(
        target,
        {
            "schema": SCHEMA,
            "in_float": in_float,
            "smoothquant": settings.smoothquant,
            "stop": stop,
            "budget_points": budget_points,
            "samples": len(examples),
            "seconds": judge.seconds,
            "ranking": [{"operator": name, "kl_per_ms": value} for name, value in ranking],
            "trials": judge.trials,
            "sources": sources,
            "libraries": settings.libraries,
        },
    )


def sources_of(inputs: SearchInputs) -> dict[str, str]:
    """Return the digests of the files that the models of a search are made from."""
    paths = (inputs.onnx, inputs.quantized, inputs.calibration)
    return {Path(path).name: sha256(path) for path in paths}


def key_of(settings: SearchSettings, sources: dict[str, str], samples: str, checkpoint: str) -> str:
    """Return the digest of all that the trials of a search depend on."""
    names = ("max_sequence", "budget_points", "smoothquant", "code", "libraries")
    return digest([sources, samples, [*(getattr(settings, name) for name in names), checkpoint]])


def switched_model(inputs: SearchInputs, scheme: str, settings: SearchSettings) -> SwitchedModel:
    """Return the model with a switch per operator, smoothed if the settings say so."""
    with TemporaryDirectory() as folder:
        quantized = inputs.quantized
        if settings.smoothquant is not None:
            quantized = Path(folder, "model.onnx")
            repair = {"smoothquant": settings.smoothquant}
            quantize_onnx(inputs.onnx, inputs.calibration, quantized, scheme=scheme, repair=repair)
        return SwitchedModel(inputs.onnx, quantized, threads=settings.threads)


def ranking_of(inputs: SearchInputs) -> list[tuple[str, float]]:
    """Return the operators ranked by their sensitivity and costs, see `ranked`.

    Raises ArtifactError where the costs lack one of the operators.
    """
    sensitivity = read_json_or_raise(inputs.sensitivity, Divergences)["operators"]
    costs = read_json_or_raise(inputs.costs, Costs)["operators"]
    if missing := [name for name in sensitivity if name not in costs]:
        raise ArtifactError(f"{inputs.costs}: lacks {missing[0]}; delete it and run again")
    return ranked(sensitivity, costs)


def ranked(
    sensitivity: dict[str, dict[str, float]], costs: dict[str, list[dict[str, float]]]
) -> list[tuple[str, float]]:
    """Rank operators by the divergence that each causes per millisecond saved, highest first.

    Milliseconds are summed over all measured shapes, each divided by batch x sequence.
    """
    found = []
    for name, fields in sensitivity.items():
        saved = sum(
            1e3 * (one["float_s"] - one["int8_s"]) / (one["batch"] * one.get("sequence", 1))
            for one in costs[name]
        )
        found.append((name, fields["kl"] / max(saved, NOTHING)))
    return sorted(found, key=lambda pair: -pair[1])


def search(judge: TrialEvaluator, ranking: list[str], seconds: float) -> tuple[list[str], str]:
    """Return the operators left in float, and `minimum` or `time limit`.

    Try all operators in int8 first. Then bisect for the shortest prefix of the ranking that holds,
    and return its operators to int8 one by one, the least sensitive first, where the budget still
    holds.
    """
    if judge.holds(()):
        return [], "minimum"
    known_to_fail, holds = 0, len(ranking)
    while holds - known_to_fail > 1:
        if not judge.has_time(seconds):
            return sorted(ranking[:holds]), "time limit"
        middle = (known_to_fail + holds) // 2
        if judge.holds(ranking[:middle]):
            holds = middle
        else:
            known_to_fail = middle
    chosen = ranking[:holds]
    # the last operator is needed: the prefix without it did not hold
    for name in reversed(chosen[:-1]):
        if not judge.has_time(seconds):
            return sorted(chosen), "time limit"
        fewer = [one for one in chosen if one != name]
        if judge.holds(fewer):
            chosen = fewer
    return sorted(chosen), "minimum"

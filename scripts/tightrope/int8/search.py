"""Search for int8-auto: the fewest operators in float that keep the accuracy budget."""

from pathlib import Path
from tempfile import TemporaryDirectory

from tightrope.artifacts.failures import read_json_or_raise
from tightrope.artifacts.files import digest, sha256, write_json
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.cache import read_cache
from tightrope.int8.calibrate import samples_sha256
from tightrope.int8.quantize import quantize_onnx
from tightrope.int8.switched_model import SwitchedModel
from tightrope.int8.trials import Judge, labels_of, require_enough

SCHEMA = 1
# smallest saving in ms: operators that int8 does not speed up rank first
NOTHING = 1e-12


def search_operators(
    *,
    onnx_path: Path | str,
    quantized: Path | str,
    calibration: Path | str,
    sensitivity: Path | str,
    costs: Path | str,
    data: Path | str,
    checkpoint: Path | str,
    target: Path | str,
    scheme: str,
    code: str,
    smoothquant: float | None,
    state: Path | str,
    budget_points: float,
    seconds: float,
    max_sequence: int,
    threads: int,
    libraries: dict[str, str | None],
) -> None:
    """Write which operators stay in float in addition to SmoothQuant, and every trial.

    A trial holds if its accuracy on the whole calibration split is `kept` within the budget,
    compared with the same model in float. Without labels, an answer counts as correct if it is that
    of the float model. Trials are also saved in `state`, from which an interrupted search resumes.
    The trials of all its sessions, except the first trial, take at most `seconds` in total.
    `smoothquant` is the strength at which `quantized` is smoothed, None for no smoothing. Raises
    TightropeError where the split is too small to decide whether a budget holds.
    """
    examples = read_split(data, "calibration")
    require_enough(data, len(examples), budget_points)
    rows = load_encoder(checkpoint, max_sequence=max_sequence)(examples)
    evidence = [read_json_or_raise(path)["operators"] for path in (sensitivity, costs)]
    ranking = ranked(*evidence)
    sources = {Path(path).name: sha256(path) for path in (onnx_path, quantized, calibration)}
    if not read_cache(calibration, model=onnx_path)["channels"]:
        smoothquant = None  # an imported cache has only ranges
    settings = [max_sequence, budget_points, smoothquant, code, libraries, sha256(checkpoint)]
    key = digest([sources, samples_sha256(examples), settings])
    with TemporaryDirectory() as folder:
        if smoothquant is not None:
            quantized = Path(folder, "model.onnx")
            repair = {"smoothquant": smoothquant}
            quantize_onnx(onnx_path, calibration, quantized, scheme=scheme, repair=repair)
        model = SwitchedModel(onnx_path, quantized, threads=threads)
    judge = Judge(model, rows, labels_of(examples), budget_points / 100, Path(state), key)
    in_float, stop = search(judge, [name for name, _ in ranking], seconds)
    write_json(
        target,
        {
            "schema": SCHEMA,
            "in_float": in_float,
            "smoothquant": smoothquant,
            "stop": stop,
            "budget_points": budget_points,
            "samples": len(examples),
            "seconds": judge.seconds,
            "ranking": [{"operator": name, "kl_per_ms": value} for name, value in ranking],
            "trials": judge.trials,
            "sources": sources,
            "libraries": libraries,
        },
    )


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


def search(judge: Judge, ranking: list[str], seconds: float) -> tuple[list[str], str]:
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

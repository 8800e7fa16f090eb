"""Small and large models that are served as one: their jobs, inputs and settings."""

from collections.abc import Iterable
from typing import Any

from tightrope.plan.job_inputs import engine_manifest
from tightrope.plan.shapes import shapes_of
from tightrope.records.cascade import CASCADE
from tightrope.signature import BATCH
from tightrope.variants import CALIBRATED, UNQUANTIZED, Variant, parse

Document = dict[str, Any]
Jobs = list[tuple[str, Variant]]
SMALL, LARGE = "small", "large"
# settings of traffic that are about engines alone
OF_ENGINES = ("variants", "padding", "buckets")
# engines in the order in which a cascade chooses among variants, where it names none
PREFERRED = ("tensorrt", "openvino", "onnxruntime", "inductor", "compile")


def cascade_jobs(config: Document, jobs: Jobs) -> dict[str, Jobs]:
    """Return the jobs of the small and of the large model of each cascade, by its name.

    A cascade is left out where one of its variants cannot run here.
    """
    found = {}
    for name, asked in config["cascades"].items():
        members = {
            key: [variant for model, variant in jobs if model == asked[key]]
            for key in (SMALL, LARGE)
        }
        chosen = chosen_variants(asked["variants"], members)
        own = [(asked[key], chosen[key]) for key in chosen]
        if len(own) == len(members):
            found[name] = own
    return found


def chosen_variants(
    named: dict[str, str | None], available: dict[str, list[Variant]]
) -> dict[str, Variant]:
    """Return the variant of each member: the one that is named, else the preferred one.

    A member is left out if none of its `available` variants is the named one, or at the place of
    the other named one.
    """
    asked = {key: parse(name) for key, name in named.items() if name}
    places = {variant.place for variant in asked.values()}
    found = {}
    for key, variants in available.items():
        fitting = [one for one in variants if not places or one.place in places]
        if key in asked:
            fitting = [one for one in variants if one == asked[key]]
        if fitting:
            found[key] = preferred(fitting)
    return found


def preferred(variants: Iterable[Variant]) -> Variant:
    """Return the variant on a GPU before a CPU, and by engine in the order of PREFERRED.

    Of an engine the first calibrated one without a repair, else the one in the narrowest float.
    """

    def rank(variant: Variant) -> tuple[Any, ...]:
        known, precision = variant.engine in PREFERRED, variant.precision
        place = PREFERRED.index(variant.engine) if known else len(PREFERRED)
        width = -UNQUANTIZED.index(precision) if precision in UNQUANTIZED else 0
        repaired = variant.repair is not None
        return variant.device != "cuda", place, precision not in CALIBRATED, repaired, width

    return min(variants, key=rank)


def cascade_records(cascades: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """Return the record of each cascade, by its name and CASCADE."""
    return {(name, CASCADE): [f"reports/{name}.cascade.json"] for name in cascades}


def cascade_inputs(plan: Any, wildcards: Any) -> dict[str, str]:
    """Return engine and checkpoint of both models, and two splits of their data."""
    found = {}
    for key, (model, variant) in zip((SMALL, LARGE), plan.cascades[wildcards.cascade], strict=True):
        found[f"{key}_engine"] = engine_manifest(model, variant)
        found[f"{key}_checkpoint"] = f"artifacts/{model}/checkpoint/checkpoint.json"
        # the same for both: those of the large one
        found["calibration"] = f"artifacts/{model}/splits/calibration.json"
        found["evaluation"] = f"artifacts/{model}/splits/evaluation.json"
    return found


def cascade_members(config: Document, plan: Any, wildcards: Any) -> Document:
    """Return `model`, `variant` and `max_sequence` of the small and the large model."""
    members = zip((SMALL, LARGE), plan.cascades[wildcards.cascade], strict=True)
    return {
        key: {
            "model": model,
            "variant": str(variant),
            "max_sequence": config["models"][model]["max_sequence"],
        }
        for key, (model, variant) in members
    }


def cascade_settings(config: Document, wildcards: Any) -> Document:
    """Return `agreement`, `batch` (the largest of `shapes` by default) and `traffic` of a cascade.

    The last is None where it is not asked for, else the settings of traffic without its variants
    and without those of padding: batches are padded to their longest text.
    """
    asked = config["cascades"][wildcards.cascade]
    applied = {key: value for key, value in config["traffic"].items() if key not in OF_ENGINES}
    traffic = applied if asked["traffic"] else None
    return {"agreement": asked["agreement"], "batch": batch_of(config, asked), "traffic": traffic}


def batch_of(config: Document, asked: Document) -> int:
    """Return how many examples a request to a cascade has."""
    largest = max(shape[BATCH] for shape in shapes_of(config, asked[LARGE]))
    return int(asked["batch"] or largest)

"""The files of a plan that hold a record or may hold a failure."""

from tightrope.plan.columns import search_columns
from tightrope.plan.config import Document
from tightrope.plan.graphs import graph_columns, graph_records
from tightrope.plan.job_inputs import audits, engine_manifest, int8_files
from tightrope.plan.plan import Plan
from tightrope.plan.profiled import shared_by_profiles
from tightrope.records.record import TRAINING


def records(plan: Plan) -> dict[tuple[str, str], list[str]]:
    """Return the files of each planned variant, of trainings and families."""
    jobs_of = {
        **{"traffic": plan.traffic, "throughput": plan.throughput, "profile": plan.profile},
        **{"idleness": plan.idleness, "causes": plan.causes},
        "activation": plan.activations,
    }
    measured = {kind: set(jobs) for kind, jobs in jobs_of.items()}
    found = {
        (model, str(variant)): [
            engine_manifest(model, variant),
            *audits(model, variant),
            f"reports/{model}/{variant}.latency.json",
            f"reports/{model}/{variant}.accuracy.json",
            *(
                f"reports/{model}/{variant}.{kind}.json"
                for kind, jobs in measured.items()
                if (model, variant) in jobs
            ),
            f"reports/{model}/{variant.place}.race.json",
        ]
        for model, variant in plan.jobs
    }
    training = {(model, TRAINING): [f"reports/{model}/training.json"] for model in plan.training}
    return found | training | plan.families


def onnx_files(model: str) -> list[str]:
    """Return the ONNX files that a model's checkpoint is exported to."""
    return [f"artifacts/{model}/model.onnx", f"artifacts/{model}/model.simplified.onnx"]


def failing_files(config: Document, plan: Plan) -> list[str]:
    """Return the files that may hold a failure, including those that variants share."""
    own = [path for paths in records(plan).values() for path in paths]
    own += [path for model in plan.models for path in onnx_files(model)]
    int8 = [path for job in plan.jobs for path in int8_files(config, *job)]
    searches = zip(*search_columns(config, plan.jobs).values(), strict=True)
    costs = [f"artifacts/{model}/costs/{'-'.join(name)}.json" for model, *name in searches]
    return (
        int8
        + costs
        + shared_by_profiles(plan.profile)
        + own
        + graph_records(graph_columns(config, plan.jobs))
    )

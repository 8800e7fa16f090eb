"""Which variants are profiled, and the files that profiles share."""

from tightrope.plan.columns import Jobs
from tightrope.plan.config import Document
from tightrope.plan.idleness import requested
from tightrope.plan.job_inputs import peaks_file, requests_file

# engines of which operators are timed on a CPU; those of torch.compile name no kernels
ENGINES = ("pytorch", "torchscript", "inductor", "onnxruntime", "openvino", "tvm")


def profiled(config: Document, jobs: Jobs) -> Jobs:
    """Return the jobs of `profile.variants`; auto is each of which the operators are timed."""
    if config["profile"]["variants"] != "auto":
        return requested(config, "profile", jobs)
    return [job for job in jobs if job[1].device == "cpu" and job[1].engine in ENGINES]


def shared_by_profiles(jobs: Jobs) -> list[str]:
    """Return the files that the profiles of a model, or of a place, share."""
    requests = [requests_file(model, variant) for model, variant in jobs]
    peaks = [peaks_file(variant) for _, variant in jobs]
    return [*dict.fromkeys([*requests, *peaks])]

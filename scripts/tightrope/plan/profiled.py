"""Which variants are profiled."""

from tightrope.plan.columns import Jobs
from tightrope.plan.config import Document
from tightrope.plan.stability import requested

# engines of which operators are timed on a CPU; those of torch.compile name no kernels
ENGINES = ("pytorch", "torchscript", "inductor", "onnxruntime", "openvino", "tvm")


def profiled(config: Document, jobs: Jobs) -> Jobs:
    """Return the jobs of `profile.variants`; auto is each of which the operators are timed."""
    if config["profile"]["variants"] != "auto":
        return requested(config, "profile", jobs)
    return [job for job in jobs if job[1].device == "cpu" and job[1].engine in ENGINES]

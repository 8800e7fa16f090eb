"""Record every prediction of one variant on the evaluation split."""

from tightrope.artifacts.manifest import Artifacts
from tightrope.jobs.execution import Execution
from tightrope.jobs.job import current_job
from tightrope.measure.accuracy import measure_accuracy

job = current_job(globals())
measure_accuracy(
    Artifacts.of(job),
    job.output.record,
    max_sequence=job.settings.max_sequence,
    max_seconds=job.settings.accuracy_seconds,
    execution=Execution.of(job),
    **{name: path for name, path in job.input.items() if name in ("baseline", "quantized")},
)

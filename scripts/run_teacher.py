"""Keep what a teacher says of the examples that its student is trained on."""

from functools import partial

from tightrope.jobs.child import Limits, run_or_stop
from tightrope.jobs.job import current_job
from tightrope.machine.cores import intra_op_threads
from tightrope.training.teaching import TeacherSettings, write_teacher_outputs

job = current_job(globals())
settings = TeacherSettings(
    **job.settings.request,
    threads=intra_op_threads(job.settings.threads),
    device="cuda" if job.resources.gpu else "cpu",
)
run = partial(
    write_teacher_outputs,
    job.output.manifest,
    settings,
    teacher=job.input.teacher,
    data=job.input.data,
    splits=dict(job.input.items()).get("splits", ()),
)
run_or_stop(job.output.manifest, run, limits=Limits.of(job))

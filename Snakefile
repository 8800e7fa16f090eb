from snakemake.utils import min_version

min_version("9.27")


report: "rules/captions/workflow.rst"


pathvars:
    logs="artifacts/logs",


include: "rules/common.smk"
include: "rules/data.smk"
include: "rules/checkpoint.smk"
include: "rules/structures.smk"
include: "rules/training.smk"
include: "rules/onnx.smk"
include: "rules/int8.smk"
include: "rules/engines.smk"
include: "rules/measure.smk"
include: "rules/workloads.smk"
include: "rules/profile.smk"
include: "rules/summary.smk"
include: "rules/report.smk"
include: "rules/bundle.smk"


declare_packs(workflow)


envvars:
    "TIGHTROPE_ATTEMPTS",
    "TIGHTROPE_PLANNED_ON",


rule all:
    default_target: True
    input:
        kept_here("reports/summary.html"),
        kept_here("reports/summary.json"),
        kept_here("reports/summary.csv"),
    localrule: True


onstart:
    if workflow.is_main_process:
        plugin.watch_signals(local=workflow.local_exec)
    announce.announce(workflow, config, PLAN)


onsuccess:
    reports.keep_reports(workflow, before=REPORT_BEFORE)
    sys.stdout.write(
        decision.closing_words(
            "reports/summary.html", "reports/summary.json", before=REPORT_BEFORE
        )
    )


onerror:
    continuing.continue_to_report(workflow, PLAN, ENDED_JOBS)

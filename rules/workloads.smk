# A study measures a variant in its own way: measure_traffic, measure_throughput, measure_idleness.
for study in STUDIES:

    rule:
        name:
            f"measure_{study}"
        input:
            **TIMED_ENGINE,
        output:
            record=reported(
                f"reports/{{model}}/{{variant}}.{study}.json", study.capitalize(), caption="study"
            ),
        log:
            f"<logs>/measure_{study}/{{model}}-{{variant}}.log",
        conda:
            JOBS.setting("environment")
        threads: WHOLE_MACHINE
        resources:
            **TIMED,
            runtime=60,
        params:
            **JOBS.params("measure_study", study=study),
        script:
            "../scripts/measure_study.py"

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
            environment
        threads: WHOLE_MACHINE
        resources:
            **TIMED,
            runtime=60,
        params:
            **RUN,
            code=code_of_study(study),
            study=study,
            settings=settings_of_study(study),
            libraries=libraries_of_study(study),
        script:
            "../scripts/measure_study.py"

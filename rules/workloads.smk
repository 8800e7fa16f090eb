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
            code=of_wildcards(job_params.study_code, SCRIPTS, study),
            study=study,
            settings=of(studies.study_settings, study),
            libraries=of_wildcards(job_params.study_libraries, study),
        script:
            "../scripts/measure_study.py"

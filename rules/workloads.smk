# A study measures a variant in its own way: measure_traffic, measure_throughput, measure_idleness.
for study in STUDIES:

    rule:
        name:
            f"measure_{study}"
        input:
            engine="artifacts/{model}/engines/{variant}/engine.json",
            checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
            data="artifacts/{model}/splits/timing.json",
        output:
            record=report(
                f"reports/{{model}}/{{variant}}.{study}.json",
                caption="captions/study.rst",
                category=study.capitalize(),
                labels={"model": "{model}", "variant": "{variant}"},
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
            code=code_of_study(study),
            host=host,
            study=study,
            settings=settings_of_study(study),
            max_sequence=of_model("max_sequence"),
            threads=config["threads"],
            libraries=libraries_of_study(study),
        script:
            "../scripts/measure_study.py"

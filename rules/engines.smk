# Each engine of the table is built by a rule of its own, which profiles and --until name.
for engine in ENGINES:

    rule:
        name:
            f"build_{engine}"
        input:
            unpack(JOBS.inputs("build_engine", engine=engine)),
        output:
            manifest=f"artifacts/{{model}}/engines/{{device}}-{engine}-{{rest}}/engine.json",
        log:
            f"<logs>/build_{engine}/{{model}}-{{device}}-{{rest}}.log",
        conda:
            JOBS.setting("environment")
        threads: WHOLE_MACHINE
        resources:
            **PLACED,
            mem_mb=ENGINES[engine].mem_mb,
            runtime=ENGINES[engine].minutes,
        params:
            **JOBS.params("build_engine", engine=engine),
        script:
            "../scripts/build_engine.py"

# Each engine of the table is built by a rule of its own, which profiles and --until name.
for engine in ENGINES:

    rule:
        name:
            f"build_{engine}"
        input:
            unpack(of(job_inputs.of_build, job_inputs.engine_inputs, engine)),
        output:
            manifest=f"artifacts/{{model}}/engines/{{device}}-{engine}-{{rest}}/engine.json",
        log:
            f"<logs>/build_{engine}/{{model}}-{{device}}-{{rest}}.log",
        conda:
            environment
        threads: WHOLE_MACHINE
        resources:
            **PLACED,
            mem_mb=ENGINES[engine].mem_mb,
            runtime=ENGINES[engine].minutes,
        params:
            code=code_of("build_engine.py", f"tightrope/engines/{engine}.py:build"),
            variant=f"{{device}}-{engine}-{{rest}}",
            host=numerics,
            threads=config["threads"],
            options=of(job_inputs.of_build, job_params.engine_options, engine),
            libraries=versions_of(*job_params.libraries_of(config, engine)),
            state=LOCATION.made(f"artifacts/{{model}}/work/{engine}"),
        script:
            "../scripts/build_engine.py"

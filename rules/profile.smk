rule measure_peaks:
    output:
        peaks="artifacts/machine/{device}.peaks.json",
    log:
        "<logs>/measure_peaks/{device}.log",
    conda:
        environment
    threads: WHOLE_MACHINE
    resources:
        **PLACED,
        mem_mb=8000,
        runtime=10,
    params:
        code=code_of("measure_peaks.py"),
        host=host,
        threads=config["threads"],
        libraries=versions_of("torch"),
    script:
        "../scripts/measure_peaks.py"


# What the requests of a model take whatever the engine.
rule measure_requests:
    input:
        unpack(of(job_inputs.counted_inputs, PLAN.variants)),
        **TIMED_MODEL,
    output:
        requests="artifacts/{model}/{device}.requests.json",
    log:
        "<logs>/measure_requests/{model}-{device}.log",
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=10,
        constraint=constraint,
        last_attempt=last_attempt,
    params:
        **RUN,
        code=code_of("measure_requests.py"),
        shapes=of(shapes.full_shapes_of_model),
        libraries=encoding_with(["onnxruntime"]),
    script:
        "../scripts/measure_requests.py"


# Of the variants in profile.variants, and of any other whose file is asked for.
rule measure_profile:
    input:
        **TIMED_ENGINE,
        requests=lambda wildcards: f"artifacts/{wildcards.model}/{place_of(wildcards)}.requests.json",
        peaks=at_place("artifacts/machine/{}.peaks.json".format),
    output:
        record=reported("reports/{model}/{variant}.profile.json", "Profiles"),
    log:
        "<logs>/measure_profile/{model}-{variant}.log",
    conda:
        environment
    threads: WHOLE_MACHINE
    resources:
        **PLACED,
        mem_mb=16000,
        runtime=30,
    params:
        **RUN,
        code=code_with("measure_profile.py", own_variant),
        libraries=libraries_with(own_variant),
    script:
        "../scripts/measure_profile.py"


# With `explain: verify`, of each profiled variant: without each cause that a setting removes.
rule verify_causes:
    input:
        unpack(of(job_inputs.build_inputs)),
        **TIMED_ENGINE,
        profile="reports/{model}/{variant}.profile.json",
    output:
        record=reported("reports/{model}/{variant}.causes.json", "Causes"),
    log:
        "<logs>/verify_causes/{model}-{variant}.log",
    conda:
        environment
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=240,
    params:
        **RUN,
        code=code_with("verify_causes.py", own_variant),
        libraries=of(job_params.build_libraries),
    script:
        "../scripts/verify_causes.py"

rule measure_peaks:
    output:
        peaks="artifacts/machine/{device}.peaks.json",
    log:
        "<logs>/measure_peaks/{device}.log",
    conda:
        environment_of_device
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=10,
        gpu=gpus_of_device,
        constraint=constraint_of_device,
        last_attempt=last_attempt,
    params:
        code=code_of("measure_peaks.py"),
        host=host_of_device,
        threads=config["threads"],
        libraries=versions_of("torch"),
    script:
        "../scripts/measure_peaks.py"


# What the requests of a model take whatever the engine.
rule measure_requests:
    input:
        unpack(counted_inputs),
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/timing.json",
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
        constraint=constraint_of_device,
        last_attempt=last_attempt,
    params:
        code=code_of("measure_requests.py"),
        host=host_of_device,
        shapes=full_shapes_of_model,
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=encoding_with(["onnxruntime"]),
    script:
        "../scripts/measure_requests.py"


# Of the variants in profile.variants, and of any other whose file is asked for.
rule measure_profile:
    input:
        engine="artifacts/{model}/engines/{variant}/engine.json",
        requests=requests_of_variant,
        peaks=peaks_of_variant,
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/timing.json",
    output:
        record=report(
            "reports/{model}/{variant}.profile.json",
            caption="captions/profile.rst",
            category="Profiles",
            labels={"model": "{model}", "variant": "{variant}"},
        ),
    log:
        "<logs>/measure_profile/{model}-{variant}.log",
    conda:
        environment_of_variant
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=30,
        gpu=gpus_of_variant,
        constraint=constraint_of_variant,
        last_attempt=last_attempt,
    params:
        code=code_with("measure_profile.py", own_variant),
        host=host_of_variant,
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=libraries_with(own_variant),
    script:
        "../scripts/measure_profile.py"


# With `explain: verify`, of each profiled variant: without each cause that a setting removes.
rule verify_causes:
    input:
        unpack(build_inputs),
        engine="artifacts/{model}/engines/{variant}/engine.json",
        profile="reports/{model}/{variant}.profile.json",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/timing.json",
    output:
        record=report(
            "reports/{model}/{variant}.causes.json",
            caption="captions/causes.rst",
            category="Causes",
            labels={"model": "{model}", "variant": "{variant}"},
        ),
    log:
        "<logs>/verify_causes/{model}-{variant}.log",
    conda:
        environment_of_variant
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=240,
        gpu=gpus_of_variant,
        constraint=constraint_of_variant,
        quiet_seconds=QUIET_SECONDS,
        last_attempt=last_attempt,
    params:
        code=code_with("verify_causes.py", own_variant),
        host=host_of_variant,
        shapes=full_shapes_of_model,
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=build_libraries,
    script:
        "../scripts/verify_causes.py"

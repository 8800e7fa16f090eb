rule measure_peaks:
    output:
        peaks="artifacts/machine/{device}.peaks.json",
    log:
        "<logs>/measure_peaks/{device}.log",
    conda:
        JOBS.setting("environment")
    threads: WHOLE_MACHINE
    resources:
        **PLACED,
        mem_mb=8000,
        runtime=10,
    params:
        **JOBS.params("measure_peaks"),
    script:
        "../scripts/measure_peaks.py"


# What the requests of a model take whatever the engine.
rule measure_requests:
    input:
        unpack(JOBS.inputs("measure_requests")),
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
        constraint=JOBS.setting("constraint"),
        last_attempt=last_attempt,
    params:
        **JOBS.params("measure_requests"),
    script:
        "../scripts/measure_requests.py"


# Of the variants in profile.variants, and of any other whose file is asked for.
rule measure_profile:
    input:
        unpack(JOBS.inputs("measure_profile")),
        **TIMED_ENGINE,
    output:
        record=reported("reports/{model}/{variant}.profile.json", "Profiles"),
    log:
        "<logs>/measure_profile/{model}-{variant}.log",
    conda:
        JOBS.setting("environment")
    threads: WHOLE_MACHINE
    resources:
        **PLACED,
        mem_mb=16000,
        runtime=30,
    params:
        **JOBS.params("measure_profile"),
    script:
        "../scripts/measure_profile.py"


# With `explain: verify`, of each profiled variant: without each cause that a setting removes.
rule verify_causes:
    input:
        unpack(JOBS.inputs("verify_causes")),
        **TIMED_ENGINE,
        profile="reports/{model}/{variant}.profile.json",
    output:
        record=reported("reports/{model}/{variant}.causes.json", "Causes"),
    log:
        "<logs>/verify_causes/{model}-{variant}.log",
    conda:
        JOBS.setting("environment")
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=240,
    params:
        **JOBS.params("verify_causes"),
    script:
        "../scripts/verify_causes.py"

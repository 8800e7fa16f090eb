rule measure_traffic:
    input:
        engine="artifacts/{model}/engines/{variant}/engine.json",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/timing.json",
    output:
        record=report(
            "reports/{model}/{variant}.traffic.json",
            caption="captions/traffic.rst",
            category="Traffic",
            labels={"model": "{model}", "variant": "{variant}"},
        ),
    log:
        "<logs>/measure_traffic/{model}-{variant}.log",
    conda:
        environment_of_variant
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=60,
        gpu=gpus_of_variant,
        constraint=constraint_of_variant,
        quiet_seconds=QUIET_SECONDS,
        last_attempt=last_attempt,
    params:
        code=code_with("measure_traffic.py", own_variant),
        host=host_of_variant,
        traffic=traffic_settings,
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=traffic_libraries,
    script:
        "../scripts/measure_traffic.py"


# Instances of one engine on cores of their own, all at work at the same time.
rule measure_throughput:
    input:
        engine="artifacts/{model}/engines/{variant}/engine.json",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/timing.json",
    output:
        record=report(
            "reports/{model}/{variant}.throughput.json",
            caption="captions/throughput.rst",
            category="Throughput",
            labels={"model": "{model}", "variant": "{variant}"},
        ),
    log:
        "<logs>/measure_throughput/{model}-{variant}.log",
    conda:
        environment_of_variant
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=60,
        gpu=gpus_of_variant,
        constraint=constraint_of_variant,
        quiet_seconds=QUIET_SECONDS,
        last_attempt=last_attempt,
    params:
        code=code_with("measure_throughput.py", own_variant),
        host=host_of_variant,
        throughput=throughput_settings,
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=libraries_with(own_variant),
    script:
        "../scripts/measure_throughput.py"


rule measure_idleness:
    input:
        engine="artifacts/{model}/engines/{variant}/engine.json",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/timing.json",
    output:
        record=report(
            "reports/{model}/{variant}.idleness.json",
            caption="captions/idleness.rst",
            category="Idleness",
            labels={"model": "{model}", "variant": "{variant}"},
        ),
    log:
        "<logs>/measure_idleness/{model}-{variant}.log",
    conda:
        environment_of_variant
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=30,
        gpu=gpus_of_variant,
        constraint=constraint_of_variant,
        quiet_seconds=QUIET_SECONDS,
        last_attempt=last_attempt,
    params:
        code=code_with("measure_idleness.py", own_variant),
        host=host_of_variant,
        idleness=idleness_settings,
        shape=idleness_shape,
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=libraries_with(own_variant),
    script:
        "../scripts/measure_idleness.py"


# Builds of the same engine from the same files, in a folder that is deleted.

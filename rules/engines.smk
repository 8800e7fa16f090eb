rule build_pytorch:
    input:
        source="artifacts/{model}/checkpoint/checkpoint.json",
    output:
        manifest=ensure(
            "artifacts/{model}/engines/{device}-pytorch-{rest}/engine.json", non_empty=True
        ),
    log:
        "<logs>/build_pytorch/{model}-{device}-{rest}.log",
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=30,
        last_attempt=last_attempt,
    params:
        code=code_of("build_pytorch.py", "tightrope/engines/pytorch.py"),
        variant="{device}-pytorch-{rest}",
        host=PLAN.numerics,
        threads=lookup("threads", within=config),
        libraries=versions_of("torch", "transformers"),
    script:
        "../scripts/build_pytorch.py"


rule build_onnxruntime:
    input:
        source=onnxruntime_source,
    output:
        manifest=ensure(
            "artifacts/{model}/engines/{device}-onnxruntime-{rest}/engine.json", non_empty=True
        ),
    log:
        "<logs>/build_onnxruntime/{model}-{device}-{rest}.log",
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=30,
        last_attempt=last_attempt,
    params:
        code=code_of("build_onnxruntime.py", "tightrope/engines/onnxruntime.py"),
        variant="{device}-onnxruntime-{rest}",
        host=PLAN.numerics,
        threads=lookup("threads", within=config),
        libraries=versions_of("onnxruntime"),
    script:
        "../scripts/build_onnxruntime.py"


rule build_openvino:
    input:
        unpack(openvino_input),
    output:
        manifest=ensure(
            "artifacts/{model}/engines/{device}-openvino-{rest}/engine.json", non_empty=True
        ),
    log:
        "<logs>/build_openvino/{model}-{device}-{rest}.log",
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=60,
        last_attempt=last_attempt,
    params:
        code=code_of("build_openvino.py", "tightrope/engines/openvino.py"),
        variant="{device}-openvino-{rest}",
        host=PLAN.numerics,
        threads=lookup("threads", within=config),
        libraries=versions_of("openvino", "nncf"),
    script:
        "../scripts/build_openvino.py"

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
        environment_of_device
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=30,
        gpu=gpus_of_device,
        last_attempt=last_attempt,
    params:
        code=code_of("build_pytorch.py", "tightrope/engines/pytorch.py"),
        variant="{device}-pytorch-{rest}",
        host=numerics_of_device,
        threads=lookup("threads", within=config),
        options=options_of("pytorch"),
        libraries=versions_of("torch", "transformers"),
    script:
        "../scripts/build_pytorch.py"


rule build_torchscript:
    input:
        source="artifacts/{model}/checkpoint/checkpoint.json",
    output:
        manifest=ensure(
            "artifacts/{model}/engines/{device}-torchscript-{rest}/engine.json", non_empty=True
        ),
    log:
        "<logs>/build_torchscript/{model}-{device}-{rest}.log",
    conda:
        environment_of_device
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=30,
        gpu=gpus_of_device,
        last_attempt=last_attempt,
    params:
        code=code_of("build_torchscript.py", "tightrope/engines/torchscript.py"),
        variant="{device}-torchscript-{rest}",
        host=numerics_of_device,
        threads=lookup("threads", within=config),
        options=options_of("torchscript"),
        libraries=versions_of("torch", "transformers"),
    script:
        "../scripts/build_torchscript.py"


rule build_compile:
    input:
        source="artifacts/{model}/checkpoint/checkpoint.json",
    output:
        manifest=ensure(
            "artifacts/{model}/engines/{device}-compile-{rest}/engine.json", non_empty=True
        ),
    log:
        "<logs>/build_compile/{model}-{device}-{rest}.log",
    conda:
        environment_of_device
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=60,
        gpu=gpus_of_device,
        last_attempt=last_attempt,
    params:
        code=code_of("build_compile.py", "tightrope/engines/compile.py"),
        variant="{device}-compile-{rest}",
        host=numerics_of_device,
        threads=lookup("threads", within=config),
        options=options_of("compile"),
        libraries=versions_of("torch", "transformers", "torchao"),
    script:
        "../scripts/build_compile.py"


rule build_inductor:
    input:
        unpack(inputs_of("inductor")),
    output:
        manifest=ensure(
            "artifacts/{model}/engines/{device}-inductor-{rest}/engine.json", non_empty=True
        ),
    log:
        "<logs>/build_inductor/{model}-{device}-{rest}.log",
    conda:
        environment_of_device
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=60,
        gpu=gpus_of_device,
        last_attempt=last_attempt,
    params:
        code=code_of("build_inductor.py", "tightrope/engines/inductor.py"),
        variant="{device}-inductor-{rest}",
        host=numerics_of_device,
        threads=lookup("threads", within=config),
        options=options_of("inductor"),
        libraries=versions_of("torch", "transformers", "torchao"),
    script:
        "../scripts/build_inductor.py"


rule build_onnxruntime:
    input:
        unpack(inputs_of("onnxruntime")),
    output:
        manifest=ensure(
            "artifacts/{model}/engines/{device}-onnxruntime-{rest}/engine.json", non_empty=True
        ),
    log:
        "<logs>/build_onnxruntime/{model}-{device}-{rest}.log",
    conda:
        environment_of_device
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=30,
        gpu=gpus_of_device,
        last_attempt=last_attempt,
    params:
        code=code_of("build_onnxruntime.py", "tightrope/engines/onnxruntime.py"),
        variant="{device}-onnxruntime-{rest}",
        host=numerics_of_device,
        threads=lookup("threads", within=config),
        options=options_of("onnxruntime"),
        libraries=versions_of("onnxruntime"),
    script:
        "../scripts/build_onnxruntime.py"


rule build_onnxruntime_tensorrt:
    input:
        unpack(inputs_of("onnxruntime_tensorrt")),
    output:
        manifest=ensure(
            "artifacts/{model}/engines/{device}-onnxruntime_tensorrt-{rest}/engine.json",
            non_empty=True,
        ),
    log:
        "<logs>/build_onnxruntime_tensorrt/{model}-{device}-{rest}.log",
    conda:
        "../envs/gpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=60,
        gpu=1,
        last_attempt=last_attempt,
    params:
        code=code_of("build_onnxruntime_tensorrt.py", "tightrope/engines/onnxruntime_tensorrt.py"),
        variant="{device}-onnxruntime_tensorrt-{rest}",
        host=PLAN.numerics["cuda"],
        threads=lookup("threads", within=config),
        options=options_of("onnxruntime_tensorrt"),
        libraries=versions_of("onnxruntime"),
    script:
        "../scripts/build_onnxruntime_tensorrt.py"


rule build_openvino:
    input:
        unpack(inputs_of("openvino")),
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
        host=PLAN.numerics["cpu"],
        threads=lookup("threads", within=config),
        options=options_of("openvino"),
        libraries=versions_of(*job_params.libraries_of(config, "openvino")),
    script:
        "../scripts/build_openvino.py"


rule build_tvm:
    input:
        source="artifacts/{model}/checkpoint/checkpoint.json",
    output:
        manifest=ensure("artifacts/{model}/engines/{device}-tvm-{rest}/engine.json", non_empty=True),
    log:
        "<logs>/build_tvm/{model}-{device}-{rest}.log",
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=240,
        last_attempt=last_attempt,
    params:
        code=code_of("build_tvm.py", "tightrope/engines/tvm.py"),
        variant="{device}-tvm-{rest}",
        host=PLAN.numerics["cpu"],
        threads=lookup("threads", within=config),
        options=options_of("tvm"),
        libraries=versions_of("apache-tvm", "torch", "transformers"),
    script:
        "../scripts/build_tvm.py"


rule build_tensorrt:
    input:
        unpack(inputs_of("tensorrt")),
    output:
        manifest=ensure(
            "artifacts/{model}/engines/{device}-tensorrt-{rest}/engine.json", non_empty=True
        ),
    log:
        "<logs>/build_tensorrt/{model}-{device}-{rest}.log",
    conda:
        "../envs/gpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=120,
        gpu=1,
        last_attempt=last_attempt,
    params:
        code=code_of("build_tensorrt.py", "tightrope/engines/tensorrt.py"),
        variant="{device}-tensorrt-{rest}",
        host=PLAN.numerics["cuda"],
        threads=lookup("threads", within=config),
        options=options_of("tensorrt"),
        libraries=versions_of("tensorrt-cu13", "polygraphy", "torch"),
    script:
        "../scripts/build_tensorrt.py"

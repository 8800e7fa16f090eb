# The other build rules inherit from build_pytorch and state only their differences.
rule build_pytorch:
    input:
        source="artifacts/{model}/checkpoint/checkpoint.json",
    output:
        manifest="artifacts/{model}/engines/{device}-pytorch-{rest}/engine.json",
    log:
        "<logs>/build_pytorch/{model}-{device}-{rest}.log",
    conda:
        environment_of_device
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=30,
        gpu=gpus_of_device,
        constraint=constraint_of_device,
        last_attempt=last_attempt,
    params:
        code=engine_code("pytorch"),
        variant="{device}-pytorch-{rest}",
        host=numerics_of_device,
        threads=config["threads"],
        options=options_of("pytorch"),
        libraries=versions_of("torch", "transformers"),
    script:
        "../scripts/build_engine.py"


use rule build_pytorch as build_torchscript with:
    output:
        manifest="artifacts/{model}/engines/{device}-torchscript-{rest}/engine.json",
    log:
        "<logs>/build_torchscript/{model}-{device}-{rest}.log",
    params:
        code=engine_code("torchscript"),
        variant="{device}-torchscript-{rest}",
        options=options_of("torchscript"),


use rule build_pytorch as build_compile with:
    output:
        manifest="artifacts/{model}/engines/{device}-compile-{rest}/engine.json",
    log:
        "<logs>/build_compile/{model}-{device}-{rest}.log",
    resources:
        mem_mb=16000,
        runtime=60,
        gpu=gpus_of_device,
        constraint=constraint_of_device,
        last_attempt=last_attempt,
    params:
        code=engine_code("compile"),
        variant="{device}-compile-{rest}",
        options=options_of("compile"),
        libraries=versions_of("torch", "transformers", "torchao"),


use rule build_pytorch as build_inductor with:
    input:
        unpack(inputs_of("inductor")),
    output:
        manifest="artifacts/{model}/engines/{device}-inductor-{rest}/engine.json",
    log:
        "<logs>/build_inductor/{model}-{device}-{rest}.log",
    resources:
        mem_mb=16000,
        runtime=60,
        gpu=gpus_of_device,
        constraint=constraint_of_device,
        last_attempt=last_attempt,
    params:
        code=engine_code("inductor"),
        variant="{device}-inductor-{rest}",
        options=options_of("inductor"),
        libraries=versions_of("torch", "transformers", "torchao"),


use rule build_pytorch as build_onnxruntime with:
    input:
        unpack(inputs_of("onnxruntime")),
    output:
        manifest="artifacts/{model}/engines/{device}-onnxruntime-{rest}/engine.json",
    log:
        "<logs>/build_onnxruntime/{model}-{device}-{rest}.log",
    params:
        code=engine_code("onnxruntime"),
        variant="{device}-onnxruntime-{rest}",
        options=options_of("onnxruntime"),
        libraries=versions_of("onnxruntime"),
        state=LOCATION.made("artifacts/{model}/work/onnxruntime"),


use rule build_pytorch as build_openvino with:
    input:
        unpack(inputs_of("openvino")),
    output:
        manifest="artifacts/{model}/engines/{device}-openvino-{rest}/engine.json",
    log:
        "<logs>/build_openvino/{model}-{device}-{rest}.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=16000,
        runtime=60,
        last_attempt=last_attempt,
    params:
        code=engine_code("openvino"),
        variant="{device}-openvino-{rest}",
        options=options_of("openvino"),
        libraries=versions_of(*job_params.libraries_of(config, "openvino")),


use rule build_pytorch as build_tvm with:
    output:
        manifest="artifacts/{model}/engines/{device}-tvm-{rest}/engine.json",
    log:
        "<logs>/build_tvm/{model}-{device}-{rest}.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=16000,
        runtime=240,
        last_attempt=last_attempt,
    params:
        code=engine_code("tvm"),
        variant="{device}-tvm-{rest}",
        options=options_of("tvm"),
        libraries=versions_of("apache-tvm", "torch", "transformers"),


use rule build_pytorch as build_tensorrt with:
    input:
        unpack(inputs_of("tensorrt")),
    output:
        manifest="artifacts/{model}/engines/{device}-tensorrt-{rest}/engine.json",
    log:
        "<logs>/build_tensorrt/{model}-{device}-{rest}.log",
    conda:
        "../envs/gpu.yaml"
    resources:
        mem_mb=16000,
        runtime=120,
        gpu=1,
        constraint=constraint_of_device,
        last_attempt=last_attempt,
    params:
        code=engine_code("tensorrt"),
        variant="{device}-tensorrt-{rest}",
        options=options_of("tensorrt"),
        libraries=versions_of("tensorrt-cu13", "polygraphy", "torch"),
        state=LOCATION.made("artifacts/{model}/work/tensorrt"),



rule build_numpy:
    input:
        source="artifacts/{model}/model.simplified.onnx",
    output:
        manifest="artifacts/{model}/engines/{device}-numpy-{rest}/engine.json",
    log:
        "<logs>/build_numpy/{model}-{device}-{rest}.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=4000,
        runtime=10,
        last_attempt=last_attempt,
    params:
        code=code_of("build_numpy.py", "tightrope/engines/numpy.py"),
        variant="{device}-numpy-{rest}",
        host=numerics_of_device,
        threads=lookup("threads", within=config),
        options=options_of("numpy"),
        libraries=versions_of("onnx"),
    script:
        "../scripts/build_numpy.py"

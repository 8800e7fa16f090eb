rule calibrate:
    input:
        onnx="artifacts/{model}/model.simplified.onnx",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/data/data.json",
    output:
        cache=ensure("artifacts/{model}/calibration/{method}-{samples}.json", non_empty=True),
    log:
        "<logs>/calibrate/{model}-{method}-{samples}.log",
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        code=code_of("calibrate.py"),
        max_sequence=lookup("models/{model}/max_sequence", within=config),
        threads=lookup("threads", within=config),
        libraries=versions_of("onnxruntime", "tokenizers"),
    script:
        "../scripts/calibrate.py"


rule quantize_onnx:
    input:
        onnx="artifacts/{model}/model.simplified.onnx",
        calibration="artifacts/{model}/calibration/{method}-{samples}.json",
    output:
        onnx=ensure("artifacts/{model}/quantized/{scheme}-{method}-{samples}.onnx", non_empty=True),
    log:
        "<logs>/quantize_onnx/{model}-{scheme}-{method}-{samples}.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        code=code_of("quantize_onnx.py"),
        libraries=versions_of("onnx", "onnxruntime"),
    script:
        "../scripts/quantize_onnx.py"

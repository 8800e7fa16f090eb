rule calibrate:
    input:
        onnx="artifacts/{model}/model.simplified.onnx",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/calibration.json",
    output:
        cache="artifacts/{model}/calibration/{method}-{samples}.json",
    log:
        "<logs>/calibrate/{model}-{method}-{samples}.log",
    benchmark:
        "artifacts/{model}/calibration/{method}-{samples}.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=60,
        last_attempt=last_attempt,
    params:
        **JOBS.params("calibrate"),
    script:
        "../scripts/calibrate.py"


rule quantize_onnx:
    input:
        unpack(JOBS.inputs("quantize_onnx")),
    output:
        onnx="artifacts/{model}/quantized/{scheme}-{calibration}.onnx",
    log:
        "<logs>/quantize_onnx/{model}-{scheme}-{calibration}.log",
    benchmark:
        "artifacts/{model}/quantized/{scheme}-{calibration}.tsv"
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=8000,
        runtime=30,
        last_attempt=last_attempt,
    params:
        **JOBS.params("quantize_onnx"),
    script:
        "../scripts/quantize_onnx.py"


rule measure_costs:
    input:
        onnx="artifacts/{model}/model.simplified.onnx",
        quantized="artifacts/{model}/quantized/{scheme}-{method}-{samples}.onnx",
    output:
        costs="artifacts/{model}/costs/{scheme}-{method}-{samples}.json",
    log:
        "<logs>/measure_costs/{model}-{scheme}-{method}-{samples}.log",
    benchmark:
        "artifacts/{model}/costs/{scheme}-{method}-{samples}.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        **ON_CPU,
        mem_mb=16000,
        runtime=30,
    params:
        **JOBS.params("measure_costs", device="cpu"),
    script:
        "../scripts/measure_costs.py"


rule search_operators:
    input:
        onnx="artifacts/{model}/model.simplified.onnx",
        quantized="artifacts/{model}/quantized/{scheme}-{method}-{samples}.onnx",
        calibration="artifacts/{model}/calibration/{method}-{samples}.json",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/calibration.json",
    output:
        search="artifacts/{model}/search/{scheme}-{method}-{samples}.json",
    log:
        "<logs>/search_operators/{model}-{scheme}-{method}-{samples}.log",
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=240,
        last_attempt=last_attempt,
    params:
        **JOBS.params("search_operators"),
    script:
        "../scripts/search_operators.py"

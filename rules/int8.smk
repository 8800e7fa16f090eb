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
        code=code_of("calibrate.py"),
        max_sequence=of_model("max_sequence"),
        percentile=of(job_params.percentile_of),
        threads=config["threads"],
        libraries=encoding_with(["onnxruntime"]),
    script:
        "../scripts/calibrate.py"


rule quantize_onnx:
    input:
        unpack(job_inputs.quantize_inputs),
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
        code=code_of("quantize_onnx.py"),
        repair=of(job_params.repair_of),
        libraries=versions_of("onnx", "onnxruntime"),
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
        mem_mb=16000,
        runtime=30,
        constraint=CPU_CONSTRAINT,
        last_attempt=last_attempt,
    params:
        code=code_of("measure_costs.py"),
        host=PLAN.host["cpu"],
        shapes=of(shapes.full_shapes_of_model),
        threads=config["threads"],
        libraries=versions_of("onnxruntime"),
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
        code=code_of("search_operators.py"),
        budget_points=config["accuracy_budget_points"],
        smoothquant=config["search_smoothquant"],
        sensitivity_samples=config["sensitivity_samples"],
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=encoding_with(["onnx", "onnxruntime"]),
    script:
        "../scripts/search_operators.py"

rule export_onnx:
    input:
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
    output:
        onnx="artifacts/{model}/model.onnx",
    log:
        "<logs>/export_onnx/{model}.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=8000,
        runtime=30,
        last_attempt=last_attempt,
    params:
        **JOBS.params("export_onnx"),
    script:
        "../scripts/export_onnx.py"


rule simplify_onnx:
    input:
        onnx="artifacts/{model}/model.onnx",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/timing.json",
    output:
        onnx="artifacts/{model}/model.simplified.onnx",
    log:
        "<logs>/simplify_onnx/{model}.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=8000,
        runtime=30,
        last_attempt=last_attempt,
    params:
        **JOBS.params("simplify_onnx"),
    script:
        "../scripts/simplify_onnx.py"

rule prepare_checkpoint:
    input:
        files=local_checkpoint_files,
    output:
        manifest="artifacts/{model}/source/checkpoint.json",
    log:
        "<logs>/prepare_checkpoint/{model}.log",
    localrule: STORED
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        code=checkpoint_code,
        task=of_model("task"),
        checkpoint=of_model("checkpoint"),
        checkpoint_sha256=of_model("checkpoint_sha256"),
        quantized=of_model("quantized"),
        seed=of_model("seed"),
        libraries=checkpoint_libraries,
    script:
        "../scripts/prepare_checkpoint.py"

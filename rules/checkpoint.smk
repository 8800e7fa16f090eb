rule prepare_checkpoint:
    input:
        files=local_checkpoint_files,
    output:
        manifest=ensure("artifacts/{model}/source/checkpoint.json", non_empty=True),
    log:
        "<logs>/prepare_checkpoint/{model}.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        code=checkpoint_code,
        task=lookup("models/{model}/task", within=config),
        checkpoint=lookup("models/{model}/checkpoint", within=config),
        checkpoint_sha256=lookup("models/{model}/checkpoint_sha256", within=config),
        quantized=lookup("models/{model}/quantized", within=config),
        seed=lookup("models/{model}/seed", within=config),
        libraries=checkpoint_libraries,
    script:
        "../scripts/prepare_checkpoint.py"

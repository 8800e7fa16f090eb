rule prepare_data:
    input:
        files=local_data_files,
    output:
        manifest=ensure("artifacts/{model}/data/data.json", non_empty=True),
    log:
        "<logs>/prepare_data/{model}.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        code=data_code,
        task=lookup("models/{model}/task", within=config),
        data=lookup("models/{model}/data", within=config),
        images=lookup("models/{model}/images", within=config),
        columns=lookup("models/{model}/columns", within=config),
        splits=lookup("models/{model}/splits", within=config),
        pool=lookup("calibration/pool", within=config),
        seed=lookup("models/{model}/seed", within=config),
        libraries=data_libraries,
    script:
        "../scripts/prepare_data.py"

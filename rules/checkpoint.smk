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
        mem_mb=4000,
        runtime=30,
    params:
        code=checkpoint_code,
        task=lookup("models/{model}/task", within=config),
        checkpoint=lookup("models/{model}/checkpoint", within=config),
        checkpoint_sha256=lookup("models/{model}/checkpoint_sha256", within=config),
        seed=lookup("models/{model}/seed", within=config),
        libraries=checkpoint_libraries,
    script:
        "../scripts/prepare_checkpoint.py"


rule train_model:
    input:
        source="artifacts/{model}/source/checkpoint.json",
        data="artifacts/{model}/data/data.json",
    output:
        manifest=ensure("artifacts/{model}/checkpoint/checkpoint.json", non_empty=True),
    log:
        "<logs>/train_model/{model}.log",
    conda:
        environment_of_training
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=240,
        gpu=gpus_of_training,
        last_attempt=last_attempt,
    params:
        code=training_code,
        state="artifacts/{model}/work/training",
        train=lookup("models/{model}/train", within=config),
        inputs=lookup("models/{model}/inputs", within=config),
        activation=lookup("models/{model}/activation", within=config),
        seed=lookup("models/{model}/seed", within=config),
        threads=lookup("threads", within=config),
        libraries=encoding_with("torch", "transformers", "safetensors"),
    script:
        "../scripts/train_model.py"

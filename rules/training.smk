rule run_teacher:
    input:
        unpack(teacher_inputs),
    output:
        manifest=ensure("artifacts/{model}/teacher/{asked}/outputs.json", non_empty=True),
    log:
        "<logs>/run_teacher/{model}-{asked}.log",
    conda:
        environment_of_training
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=120,
        gpu=gpus_of_training,
    params:
        code=teacher_code,
        request=teacher_request,
        threads=lookup("threads", within=config),
        libraries=teacher_libraries,
    script:
        "../scripts/run_teacher.py"


rule train_model:
    input:
        unpack(taught_inputs),
        unpack(structure_of_model),
        source="artifacts/{model}/source/checkpoint.json",
        data=training_examples,
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
        qat=lookup("models/{model}/qat", within=config),
        inputs=lookup("models/{model}/inputs", within=config),
        activation=lookup("models/{model}/activation", within=config),
        prune=prune_of_model,
        sparsity=lookup("models/{model}/sparsity", within=config),
        distill=lookup("models/{model}/distill", within=config),
        labels=lookup("models/{model}/labels", within=config),
        seed=lookup("models/{model}/seed", within=config),
        threads=lookup("threads", within=config),
        libraries=encoding_with(["torch", "transformers", "safetensors"]),
    script:
        "../scripts/train_model.py"


rule measure_training:
    input:
        unpack(structure_of_model),
        source="artifacts/{model}/source/checkpoint.json",
        data="artifacts/{model}/splits/train.json",
    output:
        record=report(
            ensure("reports/{model}/training.json", non_empty=True),
            caption="captions/training.rst",
            category="Training",
            labels={"model": "{model}"},
        ),
    log:
        "<logs>/measure_training/{model}.log",
    conda:
        environment_of_training
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=240,
        gpu=gpus_of_training,
        quiet_seconds=QUIET_SECONDS,
        last_attempt=last_attempt,
    params:
        code=code_of("measure_training.py"),
        host=host_of_training,
        train=recipe_to_measure,
        activation=lookup("models/{model}/activation", within=config),
        prune=prune_of_model,
        sparsity=lookup("models/{model}/sparsity", within=config),
        labels=lookup("models/{model}/labels", within=config),
        training=lookup("training", within=config),
        threads=lookup("threads", within=config),
        libraries=encoding_with(["torch", "transformers", "safetensors"]),
    script:
        "../scripts/measure_training.py"

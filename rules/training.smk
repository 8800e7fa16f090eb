rule run_teacher:
    input:
        unpack(given(distillation.teacher_inputs)),
    output:
        manifest="artifacts/{model}/teacher/{asked}/outputs.json",
    log:
        "<logs>/run_teacher/{model}-{asked}.log",
    conda:
        environment
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=120,
        gpu=gpus,
        constraint=constraint,
    params:
        code=of(job_params.teacher_code, SCRIPTS),
        request=of(distillation.teacher_request),
        threads=config["threads"],
        libraries=of(distillation.teacher_libraries),
    script:
        "../scripts/run_teacher.py"


rule train_model:
    input:
        unpack(of(distillation.taught_inputs)),
        unpack(of(pruning.structure_of_model)),
        source="artifacts/{model}/source/checkpoint.json",
        data=of(job_inputs.training_examples),
    output:
        manifest="artifacts/{model}/checkpoint/checkpoint.json",
    log:
        "<logs>/train_model/{model}.log",
    conda:
        environment
    threads: WHOLE_MACHINE
    resources:
        **PLACED,
        mem_mb=16000,
        runtime=240,
        # only to check that the model takes them: as a param, others would train it again
        sizes=of(shapes.sizes_in_words),
    params:
        code=of(job_params.training_code, SCRIPTS),
        state=LOCATION.made("artifacts/{model}/work/training"),
        train=of_model("train"),
        qat=of_model("qat"),
        inputs=of_model("inputs"),
        activation=of_model("activation"),
        prune=of(pruning.prune_of_model),
        distill=of_model("distill"),
        labels=of_model("labels"),
        seed=of_model("seed"),
        threads=config["threads"],
        libraries=encoding_with(["torch", "transformers", "safetensors"]),
    script:
        "../scripts/train_model.py"


rule measure_training:
    input:
        unpack(of(pruning.structure_of_model)),
        source="artifacts/{model}/source/checkpoint.json",
        data="artifacts/{model}/splits/train.json",
    output:
        record=reported("reports/{model}/training.json", "Training"),
    log:
        "<logs>/measure_training/{model}.log",
    conda:
        environment
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=240,
    params:
        code=code_of("measure_training.py"),
        host=host,
        train=of(studies.recipe_to_measure),
        activation=of_model("activation"),
        prune=of(pruning.prune_of_model),
        labels=of_model("labels"),
        training=config["training"],
        threads=config["threads"],
        libraries=encoding_with(["torch", "transformers", "safetensors"]),
    script:
        "../scripts/measure_training.py"

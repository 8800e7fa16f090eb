rule run_teacher:
    input:
        unpack(JOBS.inputs("run_teacher")),
    output:
        manifest="artifacts/{model}/teacher/{asked}/outputs.json",
    log:
        "<logs>/run_teacher/{model}-{asked}.log",
    conda:
        JOBS.setting("environment")
    threads: WHOLE_MACHINE
    resources:
        mem_mb=8000,
        runtime=120,
        gpu=JOBS.setting("gpu"),
        constraint=JOBS.setting("constraint"),
    params:
        **JOBS.params("run_teacher"),
    script:
        "../scripts/run_teacher.py"


rule train_model:
    input:
        unpack(JOBS.inputs("train_model")),
        source="artifacts/{model}/source/checkpoint.json",
    output:
        manifest="artifacts/{model}/checkpoint/checkpoint.json",
    log:
        "<logs>/train_model/{model}.log",
    conda:
        JOBS.setting("environment")
    threads: WHOLE_MACHINE
    resources:
        **PLACED,
        mem_mb=16000,
        runtime=240,
        # only to check that the model takes them: as a setting, others would train it again
        sizes=JOBS.setting("sizes_in_words"),
    params:
        **JOBS.params("train_model"),
    script:
        "../scripts/train_model.py"


rule measure_training:
    input:
        unpack(JOBS.inputs("measure_training")),
        source="artifacts/{model}/source/checkpoint.json",
        data="artifacts/{model}/splits/train.json",
    output:
        record=reported("reports/{model}/training.json", "Training", "training"),
    log:
        "<logs>/measure_training/{model}.log",
    conda:
        JOBS.setting("environment")
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=240,
    params:
        **JOBS.params("measure_training"),
    script:
        "../scripts/measure_training.py"

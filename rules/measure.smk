rule measure_latency:
    input:
        unpack(JOBS.inputs("measure_latency")),
        **TIMED_ENGINE,
    output:
        record=reported("reports/{model}/{variant}.latency.json", "Latency"),
    log:
        "<logs>/measure_latency/{model}-{variant}.log",
    conda:
        JOBS.setting("environment")
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=60,
    params:
        **JOBS.params("measure_latency"),
    script:
        "../scripts/measure_latency.py"


# Time a model with another activation paired with the model that has the checkpoint's own.
use rule measure_latency as compare_activation with:
    input:
        unpack(JOBS.inputs("compare_activation")),
        **TIMED_ENGINE,
    output:
        record=reported("reports/{model}/{variant}.activation.json", "Activations"),
    log:
        "<logs>/compare_activation/{model}-{variant}.log",
    params:
        **JOBS.params("compare_activation"),


rule measure_accuracy:
    input:
        unpack(JOBS.inputs("measure_accuracy")),
        engine="artifacts/{model}/engines/{variant}/engine.json",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/evaluation.json",
    output:
        record=reported("reports/{model}/{variant}.accuracy.json", "Accuracy"),
        logits="reports/{model}/{variant}.logits.npy",
    log:
        "<logs>/measure_accuracy/{model}-{variant}.log",
    conda:
        JOBS.setting("environment")
    threads: WHOLE_MACHINE
    resources:
        **PLACED,
        mem_mb=16000,
        runtime=60,
    params:
        **JOBS.params("measure_accuracy"),
    script:
        "../scripts/measure_accuracy.py"


# Decide which finalist is the fastest, in rounds that all finalists share.
rule race_finalists:
    input:
        **TIMED_MODEL,
        engines=JOBS.paths("artifacts/{model}/engines/{variant}/engine.json", jobs.of_race),
        latencies=JOBS.paths("reports/{model}/{variant}.latency.json", jobs.of_race),
        accuracies=JOBS.paths("reports/{model}/{variant}.accuracy.json", jobs.of_race),
        logits=JOBS.paths("reports/{model}/{variant}.logits.npy", jobs.of_race),
    output:
        record=reported("reports/{model}/{device}.race.json", "Races"),
    log:
        "<logs>/race_finalists/{model}-{device}.log",
    conda:
        JOBS.setting("environment")
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=60,
    params:
        **JOBS.params("race_finalists"),
    script:
        "../scripts/race_finalists.py"


# A model and those that start from it, in rounds that the engines of all of them share.
rule race_family:
    input:
        engines=JOBS.paths("artifacts/{model}/engines/{variant}/engine.json", jobs.of_family),
        latencies=JOBS.paths("reports/{model}/{variant}.latency.json", jobs.of_family),
        accuracies=JOBS.paths("reports/{model}/{variant}.accuracy.json", jobs.of_family),
        logits=JOBS.paths("reports/{model}/{variant}.logits.npy", jobs.of_family),
        races=JOBS.paths("reports/{model}/{device}.race.json", jobs.members),
        checkpoints=JOBS.paths("artifacts/{model}/checkpoint/checkpoint.json", jobs.members),
        data=JOBS.paths("artifacts/{model}/splits/timing.json", jobs.members),
    output:
        record=reported("reports/{model}/{device}.family.json", "Families"),
    log:
        "<logs>/race_family/{model}-{device}.log",
    conda:
        JOBS.setting("environment")
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=60,
    params:
        **JOBS.params("race_family"),
    script:
        "../scripts/race_family.py"

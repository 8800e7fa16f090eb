rule measure_latency:
    input:
        unpack(job_inputs.judged_input),
        **TIMED_ENGINE,
        baseline=of_plan(plan.baseline_engine),
    output:
        record=reported("reports/{model}/{variant}.latency.json", "Latency"),
    log:
        "<logs>/measure_latency/{model}-{variant}.log",
    conda:
        environment
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=60,
    params:
        **RUN,
        code=code_with("measure_latency.py", with_baseline),
        shapes=of(shapes.shapes_of_model),
        streams=of(job_params.streams_of),
        latency=of(job_params.latency_of_model),
        libraries=libraries_with(with_baseline),
    script:
        "../scripts/measure_latency.py"


# Time a model with another activation paired with the model that has the checkpoint's own.
use rule measure_latency as compare_activation with:
    input:
        unpack(job_inputs.judged_input),
        **TIMED_ENGINE,
        baseline=of_plan(plan.reference_engine),
    output:
        record=reported("reports/{model}/{variant}.activation.json", "Activations"),
    log:
        "<logs>/compare_activation/{model}-{variant}.log",
    params:
        code=code_with("measure_latency.py", own_variant),
        streams=[],
        libraries=libraries_with(own_variant),


rule measure_accuracy:
    input:
        unpack(of(job_inputs.collapse_inputs, PLAN.baselines)),
        engine="artifacts/{model}/engines/{variant}/engine.json",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/evaluation.json",
    output:
        record=reported("reports/{model}/{variant}.accuracy.json", "Accuracy"),
        logits="reports/{model}/{variant}.logits.npy",
    log:
        "<logs>/measure_accuracy/{model}-{variant}.log",
    conda:
        environment
    threads: WHOLE_MACHINE
    resources:
        **PLACED,
        mem_mb=16000,
        runtime=60,
    params:
        code=code_with("measure_accuracy.py", own_variant),
        host=numerics,
        max_sequence=of_model("max_sequence"),
        max_seconds=config["accuracy_seconds"],
        threads=config["threads"],
        libraries=libraries_with(own_variant),
    script:
        "../scripts/measure_accuracy.py"


RACE = {
    **RUN,
    "baseline": lambda wildcards: PLAN.baselines[wildcards.model][wildcards.device],
    "shapes": of(shapes.shapes_of_model),
    "latency": job_params.latency_settings(config),
    "decision": config["decision"],
    "budget_points": config["accuracy_budget_points"],
    "accept_disturbed": config["latency"]["accept_disturbed"],
}


# Decide which finalist is the fastest, in rounds that all finalists share.
rule race_finalists:
    input:
        **TIMED_MODEL,
        engines=of_raced("artifacts/{model}/engines/{variant}/engine.json"),
        latencies=of_raced("reports/{model}/{variant}.latency.json"),
        accuracies=of_raced("reports/{model}/{variant}.accuracy.json"),
        logits=of_raced("reports/{model}/{variant}.logits.npy"),
    output:
        record=reported("reports/{model}/{device}.race.json", "Races"),
    log:
        "<logs>/race_finalists/{model}-{device}.log",
    conda:
        environment
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=60,
    params:
        **RACE,
        code=code_with("race_finalists.py", all_raced),
        goal=of(job_params.goal_of_race),
        libraries=libraries_with(all_raced),
    script:
        "../scripts/race_finalists.py"


# A model and those that start from it, in rounds that the engines of all of them share.
rule race_family:
    input:
        engines=of_family("artifacts/{model}/engines/{variant}/engine.json"),
        latencies=of_family("reports/{model}/{variant}.latency.json"),
        accuracies=of_family("reports/{model}/{variant}.accuracy.json"),
        logits=of_family("reports/{model}/{variant}.logits.npy"),
        races=of_members("reports/{model}/{device}.race.json"),
        checkpoints=of_members("artifacts/{model}/checkpoint/checkpoint.json"),
        data=of_members("artifacts/{model}/splits/timing.json"),
    output:
        record=reported("reports/{model}/{device}.family.json", "Families"),
    log:
        "<logs>/race_family/{model}-{device}.log",
    conda:
        environment
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=60,
    params:
        **RACE,
        code=code_with("race_family.py", all_of_family),
        libraries=libraries_with(all_of_family),
    script:
        "../scripts/race_family.py"

rule measure_latency:
    input:
        unpack(judged_input),
        engine="artifacts/{model}/engines/{variant}/engine.json",
        baseline=baseline_engine,
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/timing.json",
    output:
        record=report(
            "reports/{model}/{variant}.latency.json",
            caption="captions/latency.rst",
            category="Latency",
            labels={"model": "{model}", "variant": "{variant}"},
        ),
    log:
        "<logs>/measure_latency/{model}-{variant}.log",
    conda:
        environment_of_variant
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=60,
        gpu=gpus_of_variant,
        constraint=constraint_of_variant,
        quiet_seconds=QUIET_SECONDS,
        last_attempt=last_attempt,
    params:
        code=code_with("measure_latency.py", with_baseline),
        host=host_of_variant,
        shapes=shapes_of_model,
        streams=streams_of_variant,
        latency=latency_of_model,
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=libraries_with(with_baseline),
    script:
        "../scripts/measure_latency.py"


# Time a model with another activation paired with the model that has the checkpoint's own.
use rule measure_latency as compare_activation with:
    input:
        unpack(judged_input),
        engine="artifacts/{model}/engines/{variant}/engine.json",
        baseline=reference_engine,
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/timing.json",
    output:
        record=report(
            "reports/{model}/{variant}.activation.json",
            caption="captions/activation.rst",
            category="Activations",
            labels={"model": "{model}", "variant": "{variant}"},
        ),
    log:
        "<logs>/compare_activation/{model}-{variant}.log",
    params:
        code=code_with("measure_latency.py", own_variant),
        streams=[],
        libraries=libraries_with(own_variant),


rule measure_accuracy:
    input:
        unpack(collapse_inputs),
        engine="artifacts/{model}/engines/{variant}/engine.json",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/evaluation.json",
    output:
        record=report(
            "reports/{model}/{variant}.accuracy.json",
            caption="captions/accuracy.rst",
            category="Accuracy",
            labels={"model": "{model}", "variant": "{variant}"},
        ),
        logits="reports/{model}/{variant}.logits.npy",
    log:
        "<logs>/measure_accuracy/{model}-{variant}.log",
    conda:
        environment_of_variant
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=60,
        gpu=gpus_of_variant,
        constraint=constraint_of_variant,
        last_attempt=last_attempt,
    params:
        code=code_with("measure_accuracy.py", own_variant),
        host=numerics_of_variant,
        max_sequence=of_model("max_sequence"),
        max_seconds=config["accuracy_seconds"],
        threads=config["threads"],
        libraries=libraries_with(own_variant),
    script:
        "../scripts/measure_accuracy.py"


# Decide which finalist is the fastest, in rounds that all finalists share.
rule race_finalists:
    input:
        engines=of_raced("artifacts/{model}/engines/{variant}/engine.json"),
        latencies=of_raced("reports/{model}/{variant}.latency.json"),
        accuracies=of_raced("reports/{model}/{variant}.accuracy.json"),
        logits=of_raced("reports/{model}/{variant}.logits.npy"),
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/timing.json",
    output:
        record=report(
            "reports/{model}/{device}.race.json",
            caption="captions/race.rst",
            category="Races",
            labels={"model": "{model}", "device": "{device}"},
        ),
    log:
        "<logs>/race_finalists/{model}-{device}.log",
    conda:
        environment_of_device
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=60,
        gpu=gpus_of_device,
        constraint=constraint_of_device,
        quiet_seconds=QUIET_SECONDS,
        last_attempt=last_attempt,
    params:
        code=code_with("race_finalists.py", all_raced),
        host=host_of_device,
        baseline=baseline_of_device,
        shapes=shapes_of_model,
        latency=latency_settings,
        decision=config["decision"],
        budget_points=config["accuracy_budget_points"],
        goal=goal_of_race,
        accept_disturbed=config["latency"]["accept_disturbed"],
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
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
        record=report(
            "reports/{model}/{device}.family.json",
            caption="captions/family.rst",
            category="Families",
            labels={"model": "{model}", "device": "{device}"},
        ),
    log:
        "<logs>/race_family/{model}-{device}.log",
    conda:
        environment_of_device
    threads: WHOLE_MACHINE
    resources:
        mem_mb=16000,
        runtime=60,
        gpu=gpus_of_device,
        constraint=constraint_of_device,
        quiet_seconds=QUIET_SECONDS,
        last_attempt=last_attempt,
    params:
        code=code_with("race_family.py", all_of_family),
        host=host_of_device,
        baseline=baseline_of_device,
        shapes=shapes_of_model,
        latency=latency_settings,
        decision=config["decision"],
        budget_points=config["accuracy_budget_points"],
        accept_disturbed=config["latency"]["accept_disturbed"],
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=libraries_with(all_of_family),
    script:
        "../scripts/race_family.py"

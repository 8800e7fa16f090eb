rule measure_latency:
    input:
        unpack(job_inputs.judged_input),
        engine="artifacts/{model}/engines/{variant}/engine.json",
        baseline=of_plan(plan.baseline_engine),
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
        environment
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=60,
    params:
        code=code_with("measure_latency.py", with_baseline),
        host=host,
        shapes=of(shapes.shapes_of_model),
        streams=of(job_params.streams_of),
        latency=of(job_params.latency_of_model),
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=libraries_with(with_baseline),
    script:
        "../scripts/measure_latency.py"


# Time a model with another activation paired with the model that has the checkpoint's own.
use rule measure_latency as compare_activation with:
    input:
        unpack(job_inputs.judged_input),
        engine="artifacts/{model}/engines/{variant}/engine.json",
        baseline=of_plan(plan.reference_engine),
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
        unpack(of(job_inputs.collapse_inputs, PLAN.baselines)),
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
        environment
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=60,
    params:
        code=code_with("race_finalists.py", all_raced),
        host=host,
        baseline=baseline,
        shapes=of(shapes.shapes_of_model),
        latency=job_params.latency_settings(config),
        decision=config["decision"],
        budget_points=config["accuracy_budget_points"],
        goal=of(job_params.goal_of_race),
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
        environment
    threads: WHOLE_MACHINE
    resources:
        **TIMED,
        runtime=60,
    params:
        code=code_with("race_family.py", all_of_family),
        host=host,
        baseline=baseline,
        shapes=of(shapes.shapes_of_model),
        latency=job_params.latency_settings(config),
        decision=config["decision"],
        budget_points=config["accuracy_budget_points"],
        accept_disturbed=config["latency"]["accept_disturbed"],
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=libraries_with(all_of_family),
    script:
        "../scripts/race_family.py"

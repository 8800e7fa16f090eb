rule summarize:
    input:
        engines=collect("artifacts/{model}/engines/{variant}/engine.json", zip, **JOBS),
        latencies=collect("reports/{model}/{variant}.latency.json", zip, **JOBS),
        accuracies=collect("reports/{model}/{variant}.accuracy.json", zip, **JOBS),
        traffic=collect("reports/{model}/{variant}.traffic.json", zip, **TRAFFIC_JOBS),
        throughputs=collect("reports/{model}/{variant}.throughput.json", zip, **THROUGHPUT_JOBS),
        profiles=collect("reports/{model}/{variant}.profile.json", zip, **PROFILE_JOBS),
        idleness=collect("reports/{model}/{variant}.idleness.json", zip, **IDLENESS_JOBS),
        builds=collect("reports/{model}/{variant}.builds.json", zip, **BUILDS_JOBS),
        causes=collect("reports/{model}/{variant}.causes.json", zip, **CAUSES_JOBS),
        activations=collect("reports/{model}/{variant}.activation.json", zip, **ACTIVATION_JOBS),
        races=collect("reports/{model}/{device}.race.json", zip, **RACES),
        families=collect("reports/{model}/{device}.family.json", zip, **FAMILIES),
        compressions=collect("artifacts/{model}/compression.json", model=SEARCHED),
        audits=collect("artifacts/{model}/audit/{variant}.json", zip, **AUDITED_JOBS),
        sensitivities=collect(
            "artifacts/{model}/sensitivity/{scheme}-{calibration}.json", zip, **SEARCHES
        ),
        searches=collect("artifacts/{model}/search/{scheme}-{calibration}.json", zip, **SEARCHES),
        caches=collect("artifacts/{model}/calibration/{cache}.json", zip, **CACHES),
        cascades=collect("reports/{cascade}.cascade.json", cascade=list(PLAN.cascades)),
        training=collect("reports/{model}/training.json", model=PLAN.training),
        checkpoints=collect("artifacts/{model}/checkpoint/checkpoint.json", model=PLAN.models),
        splits=collect("artifacts/{model}/splits/{split}.json", model=PLAN.models, split=SPLITS),
    # the last report stays until the new one takes its place
    output:
        json=ensure(update("reports/summary.json"), non_empty=True),
        csv=ensure(update("reports/summary.csv"), non_empty=True),
    log:
        "<logs>/summarize/summarize.log",
    localrule: True
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=4000,
        runtime=10,
    params:
        code=code_of("summarize.py"),
        configuration=CONFIGURATION,
        overrides=OVERRIDES,
        unavailable=PLAN.unavailable,
        failed=PLAN.failed,
        baselines=PLAN.baselines,
        references=PLAN.references,
        budget_points=lookup("accuracy_budget_points", within=config),
        goal=lookup("goal", within=config),
        prices=lookup("prices", within=config),
        prepared=PREPARED,
        accept_disturbed=lookup("latency/accept_disturbed", within=config),
        generation=GENERATIONS["summarize"],
        libraries=versions_of("pillow"),
    script:
        "../scripts/summarize.py"

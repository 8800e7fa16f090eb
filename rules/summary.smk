rule summarize:
    input:
        engines=paths_of("artifacts/{model}/engines/{variant}/engine.json", JOBS),
        latencies=paths_of("reports/{model}/{variant}.latency.json", JOBS),
        accuracies=paths_of("reports/{model}/{variant}.accuracy.json", JOBS),
        logits=paths_of("reports/{model}/{variant}.logits.npy", JOBS),
        traffic=paths_of("reports/{model}/{variant}.traffic.json", TRAFFIC_JOBS),
        throughputs=paths_of("reports/{model}/{variant}.throughput.json", THROUGHPUT_JOBS),
        profiles=paths_of("reports/{model}/{variant}.profile.json", PROFILE_JOBS),
        idleness=paths_of("reports/{model}/{variant}.idleness.json", IDLENESS_JOBS),
        causes=paths_of("reports/{model}/{variant}.causes.json", CAUSES_JOBS),
        activations=paths_of("reports/{model}/{variant}.activation.json", ACTIVATION_JOBS),
        races=paths_of("reports/{model}/{device}.race.json", RACES),
        families=paths_of("reports/{model}/{device}.family.json", FAMILIES),
        audits=paths_of("artifacts/{model}/audit/{variant}.json", AUDITED_JOBS),
        searches=paths_of("artifacts/{model}/search/{scheme}-{calibration}.json", SEARCHES),
        caches=paths_of("artifacts/{model}/calibration/{cache}.json", CACHES),
        training=paths_of("reports/{model}/training.json", {"model": PLAN.training}),
        checkpoints=paths_of("artifacts/{model}/checkpoint/checkpoint.json", {"model": PLAN.models}),
        splits=paths_of("artifacts/{model}/splits/{split}.json", ALL_SPLITS),
        prepared=prepared_files,
    # the last report stays until the new one takes its place
    output:
        json=kept_here(update("reports/summary.json")),
        csv=kept_here(update("reports/summary.csv")),
    log:
        "<logs>/summarize/summarize.log",
    localrule: True
    conda:
        "../envs/cpu.yaml"
    # models are read in as many processes
    threads: 4
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
        budget_points=config["accuracy_budget_points"],
        goal=config["goal"],
        prices=hosts.prices_of(config),
        prepared=prepared_of_run,
        accept_disturbed=config["latency"]["accept_disturbed"],
        libraries=versions_of("pillow"),
    script:
        "../scripts/summarize.py"

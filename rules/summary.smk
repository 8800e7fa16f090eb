rule summarize:
    input:
        engines=paths_of("artifacts/{model}/engines/{variant}/engine.json", PLAN.jobs),
        latencies=paths_of("reports/{model}/{variant}.latency.json", PLAN.jobs),
        accuracies=paths_of("reports/{model}/{variant}.accuracy.json", PLAN.jobs),
        logits=paths_of("reports/{model}/{variant}.logits.npy", PLAN.jobs),
        profiles=paths_of("reports/{model}/{variant}.profile.json", PLAN.measured["profile"]),
        studies=paths_of(
            "reports/{model}/{variant}.{study}.json",
            [(*job, study) for study in STUDIES for job in PLAN.measured[study]],
        ),
        causes=paths_of("reports/{model}/{variant}.causes.json", PLAN.measured["causes"]),
        activations=paths_of(
            "reports/{model}/{variant}.activation.json", PLAN.measured["activation"]
        ),
        races=paths_of("reports/{model}/{device}.race.json", PLAN.variants),
        families=paths_of("reports/{model}/{device}.family.json", PLAN.families),
        searches=paths_of("artifacts/{model}/search/{scheme}-{calibration}.json", SEARCHES),
        caches=paths_of(
            "artifacts/{model}/calibration/{cache}.json", job_inputs.caches_of(PLAN.jobs)
        ),
        training=paths_of("reports/{model}/training.json", PLAN.training),
        checkpoints=paths_of("artifacts/{model}/checkpoint/checkpoint.json", PLAN.models),
        splits=paths_of(
            "artifacts/{model}/splits/{split}.json",
            [(model, split) for model in PLAN.models for split in SPLITS],
        ),
        prepared=of(job_inputs.prepared_files, PLAN.jobs),
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
        configuration=reports.configuration_files(workflow),
        overrides=reports.overrides(workflow),
        unavailable=PLAN.unavailable,
        failed=PLAN.failed,
        baselines=PLAN.baselines,
        references=PLAN.references,
        budget_points=config["accuracy_budget_points"],
        goal=config["goal"],
        prices=hosts.prices_of(config),
        prepared=of(job_inputs.prepared, PLAN.jobs),
        accept_disturbed=config["latency"]["accept_disturbed"],
        libraries=versions_of("pillow"),
    script:
        "../scripts/summarize.py"

rule summarize:
    input:
        unpack(JOBS.inputs("summarize")),
        engines=JOBS.paths("artifacts/{model}/engines/{variant}/engine.json", PLAN.jobs),
        latencies=JOBS.paths("reports/{model}/{variant}.latency.json", PLAN.jobs),
        accuracies=JOBS.paths("reports/{model}/{variant}.accuracy.json", PLAN.jobs),
        logits=JOBS.paths("reports/{model}/{variant}.logits.npy", PLAN.jobs),
        profiles=JOBS.paths("reports/{model}/{variant}.profile.json", PLAN.measured["profile"]),
        studies=JOBS.paths(
            "reports/{model}/{variant}.{study}.json",
            [(*job, study) for study in STUDIES for job in PLAN.measured[study]],
        ),
        causes=JOBS.paths("reports/{model}/{variant}.causes.json", PLAN.measured["causes"]),
        activations=JOBS.paths(
            "reports/{model}/{variant}.activation.json", PLAN.measured["activation"]
        ),
        races=JOBS.paths("reports/{model}/{device}.race.json", PLAN.variants),
        families=JOBS.paths("reports/{model}/{device}.family.json", PLAN.families),
        searches=JOBS.paths("artifacts/{model}/search/{scheme}-{calibration}.json", PLAN.searches),
        caches=JOBS.paths(
            "artifacts/{model}/calibration/{cache}.json", job_inputs.caches_of(PLAN.jobs)
        ),
        training=JOBS.paths("reports/{model}/training.json", PLAN.training),
        checkpoints=JOBS.paths("artifacts/{model}/checkpoint/checkpoint.json", PLAN.models),
        splits=collect("artifacts/{model}/splits/{split}.json", model=PLAN.models, split=SPLITS),
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
        **JOBS.params("summarize"),
    script:
        "../scripts/summarize.py"

# What is deployed of a variant; asked for by its name, or by `make bundle`.
rule bundle:
    input:
        unpack(JOBS.inputs("bundle")),
        engine="artifacts/{model}/engines/{variant}/engine.json",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        data="artifacts/{model}/splits/evaluation.json",
        latency="reports/{model}/{variant}.latency.json",
        accuracy="reports/{model}/{variant}.accuracy.json",
        logits="reports/{model}/{variant}.logits.npy",
        # the card says what the variant was chosen or rejected against, and the page the same
        summary=kept_here("reports/summary.json"),
        page=kept_here("reports/summary.html"),
        template=kept_here(f"{LOCATION.scripts}/tightrope/bundle/template/card.md.j2"),
    output:
        bundle="artifacts/{model}/bundle/{variant}.tar.gz",
    log:
        "<logs>/bundle/{model}-{variant}.log",
    localrule: True
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=4000,
        runtime=10,
    params:
        **JOBS.params("bundle"),
    script:
        "../scripts/bundle.py"


rule bundle_triton:
    input:
        engine="artifacts/{model}/engines/{variant}/engine.json",
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        summary=kept_here("reports/summary.json"),
        page=kept_here("reports/summary.html"),
        config=kept_here(f"{LOCATION.scripts}/tightrope/bundle/template/triton.pbtxt.j2"),
        readme=kept_here(f"{LOCATION.scripts}/tightrope/bundle/template/triton.md.j2"),
    output:
        bundle="artifacts/{model}/bundle/{variant}.triton.tar.gz",
    log:
        "<logs>/bundle_triton/{model}-{variant}.log",
    localrule: True
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=4000,
        runtime=10,
    params:
        **JOBS.params("bundle_triton"),
    script:
        "../scripts/bundle_triton.py"

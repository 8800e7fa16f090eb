rule prepare_checkpoint:
    input:
        unpack(JOBS.inputs("prepare_checkpoint")),
    output:
        manifest="artifacts/{model}/source/checkpoint.json",
    log:
        "<logs>/prepare_checkpoint/{model}.log",
    localrule: LOCATION.stored
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        **JOBS.params("prepare_checkpoint"),
    script:
        "../scripts/prepare_checkpoint.py"

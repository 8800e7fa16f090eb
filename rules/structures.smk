# Of the model that another one starts from: the latency of smaller structures, weights left alone.
rule measure_structures:
    input:
        checkpoint="artifacts/{model}/checkpoint/checkpoint.json",
        timing="artifacts/{model}/splits/timing.json",
    output:
        structures="artifacts/{model}/structures/{structures}.json",
    log:
        "<logs>/measure_structures/{model}-{structures}.log",
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        **ON_CPU,
        mem_mb=16000,
        runtime=240,
        quiet_seconds=TIMED["quiet_seconds"],
    params:
        **JOBS.params("measure_structures", device="cpu"),
    script:
        "../scripts/measure_structures.py"


rule choose_structure:
    input:
        unpack(JOBS.inputs("choose_structure")),
        source="artifacts/{model}/source/checkpoint.json",
        data="artifacts/{model}/splits/train.json",
    output:
        structure="artifacts/{model}/structure.json",
    log:
        "<logs>/choose_structure/{model}.log",
    conda:
        "../envs/cpu.yaml"
    threads: WHOLE_MACHINE
    resources:
        **ON_CPU,
        mem_mb=16000,
        runtime=240,
        quiet_seconds=TIMED["quiet_seconds"],
    params:
        **JOBS.params("choose_structure"),
    script:
        "../scripts/choose_structure.py"

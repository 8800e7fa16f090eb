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
        mem_mb=16000,
        runtime=240,
        quiet_seconds=QUIET_SECONDS,
        constraint=CPU_CONSTRAINT,
        last_attempt=last_attempt,
    params:
        code=code_with("measure_structures.py", of(pruning.variants_of, pruning.engine_of_table)),
        host=PLAN.host["cpu"],
        engine=of(pruning.engine_of_table),
        max_sequence=of_model("max_sequence"),
        threads=config["threads"],
        libraries=of(pruning.structure_libraries, pruning.engine_of_table),
    script:
        "../scripts/measure_structures.py"


rule choose_structure:
    input:
        unpack(of(pruning.structure_inputs)),
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
        mem_mb=16000,
        runtime=240,
        quiet_seconds=QUIET_SECONDS,
        constraint=CPU_CONSTRAINT,
        last_attempt=last_attempt,
    params:
        code=code_with("choose_structure.py", of(pruning.variants_of, pruning.engine_of_model)),
        host=of(pruning.host_of_choice, PLAN),
        asked=of(pruning.asked_of_model),
        engine=of(pruning.engine_of_model),
        labels=of_model("labels"),
        max_sequence=of_model("max_sequence"),
        seed=of_model("seed"),
        threads=config["threads"],
        libraries=of(pruning.structure_libraries, pruning.engine_of_model),
    script:
        "../scripts/choose_structure.py"

# only to check that the examples are enough: as params, they would make the data stale
SIZES = {name: JOBS.setting(name) for name in jobs.SIZES}


rule prepare_data:
    input:
        unpack(JOBS.inputs("prepare_data")),
    output:
        manifest="artifacts/{model}/data/data.json",
    log:
        "<logs>/prepare_data/{model}.log",
    localrule: LOCATION.stored
    conda:
        "../envs/cpu.yaml"
    resources:
        **SIZES,
        mem_mb=8000,
        runtime=30,
    params:
        **JOBS.params("prepare_data"),
    script:
        "../scripts/prepare_data.py"


# Say which rows of the data are a split; they are not copied.
rule split_data:
    input:
        data="artifacts/{model}/data/data.json",
    output:
        manifest="artifacts/{model}/splits/{split}.json",
    log:
        "<logs>/split_data/{model}-{split}.log",
    localrule: True
    conda:
        "../envs/cpu.yaml"
    resources:
        **SIZES,
        mem_mb=2000,
        runtime=10,
    params:
        **JOBS.params("split_data"),
    script:
        "../scripts/split_data.py"

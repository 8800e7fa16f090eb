# only to check that the examples are enough: as params, they would make the data stale
SIZES = {
    f"{split}_size": of(job_params.size_of, split)
    for split in ("train", "evaluation", "calibration")
}


rule prepare_data:
    input:
        files=given(job_inputs.of_data, data_sources.local_files),
    output:
        manifest="artifacts/{model}/data/data.json",
    log:
        "<logs>/prepare_data/{model}.log",
    localrule: STORED
    conda:
        "../envs/cpu.yaml"
    resources:
        **SIZES,
        mem_mb=8000,
        runtime=30,
    params:
        code=of(job_params.data_code, SCRIPTS),
        task=of_model("task"),
        data=of_model("data"),
        images=of_model("images"),
        columns=of_model("columns"),
        limits=of(job_params.limits_of),
        seed=of_model("seed"),
        libraries=of(job_inputs.of_data, data_sources.libraries),
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
        code=code_of("split_data.py"),
        sizes=of(job_params.deciding_sizes),
    script:
        "../scripts/split_data.py"

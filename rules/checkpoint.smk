rule prepare_checkpoint:
    input:
        files=given(job_inputs.of_checkpoint, checkpoint_source.local_files),
    output:
        manifest="artifacts/{model}/source/checkpoint.json",
    log:
        "<logs>/prepare_checkpoint/{model}.log",
    localrule: STORED
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        code=of(job_params.checkpoint_code, SCRIPTS),
        task=of_model("task"),
        checkpoint=of_model("checkpoint"),
        checkpoint_sha256=of_model("checkpoint_sha256"),
        quantized=of_model("quantized"),
        seed=of_model("seed"),
        libraries=of(job_inputs.of_checkpoint, checkpoint_source.libraries),
    script:
        "../scripts/prepare_checkpoint.py"

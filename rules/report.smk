rule describe_graph:
    input:
        unpack(JOBS.inputs("describe_graph")),
    output:
        record="reports/{model}/graphs/{graph}.json",
        structure="reports/{model}/graphs/{graph}.onnx",
    log:
        "<logs>/describe_graph/{model}-{graph}.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=8000,
        runtime=10,
        last_attempt=last_attempt,
    params:
        **JOBS.params("describe_graph"),
    script:
        "../scripts/describe_graph.py"


rule render_report:
    input:
        unpack(JOBS.inputs("render_report")),
        summary=kept_here("reports/summary.json"),
        graphs=JOBS.paths("reports/{model}/graphs/{graph}.json", PLAN.graphs),
    output:
        page=report(
            kept_here(update("reports/summary.html")),
            caption="captions/summary.rst",
            category="Summary",
        ),
    log:
        "<logs>/render_report/render_report.log",
    localrule: True
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=4000,
        runtime=10,
    params:
        **JOBS.params("render_report"),
    script:
        "../scripts/render_report.py"

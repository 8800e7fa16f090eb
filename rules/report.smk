rule describe_graph:
    input:
        unpack(of_wildcards(job_inputs.graph_inputs, SEARCHES)),
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
        code=code_of("describe_graph.py"),
        libraries=versions_of("onnx"),
    script:
        "../scripts/describe_graph.py"


rule render_report:
    input:
        summary=kept_here("reports/summary.json"),
        graphs=paths_of("reports/{model}/graphs/{graph}.json", GRAPHS),
        template=kept_here(
            collect(
                f"{SCRIPTS}/tightrope/report/template/{{part}}.html",
                part=[
                    "shell",
                    "page",
                    "macros",
                    "deploy",
                    "trade-off",
                    "answers",
                    "int8",
                    "inside",
                    "study",
                    "profile",
                    "causes",
                    "activations",
                    "family",
                    "training",
                    "costs",
                    "results",
                    "not-run",
                    "reading",
                ],
            )
        ),
        style=kept_here(f"{SCRIPTS}/tightrope/report/template/page.css"),
        script=kept_here(f"{SCRIPTS}/tightrope/report/template/page.js"),
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
        code=code_of("render_report.py"),
        libraries=versions_of("vl-convert-python"),
    script:
        "../scripts/render_report.py"

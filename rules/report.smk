rule render_graph:
    input:
        unpack(graph_inputs),
    output:
        record="reports/{model}/graphs/{graph}.json",
        picture="reports/{model}/graphs/{graph}.svg",
        structure="reports/{model}/graphs/{graph}.onnx",
    log:
        "<logs>/render_graph/{model}-{graph}.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=8000,
        runtime=10,
        last_attempt=last_attempt,
    params:
        code=code_of("render_graph.py"),
        libraries=versions_of("onnx"),
    script:
        "../scripts/render_graph.py"


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
                    "index",
                    "macros",
                    "disturbed",
                    "deploy",
                    "goal",
                    "trade_off",
                    "speed_ups",
                    "answers",
                    "int8",
                    "graphs",
                    "traffic",
                    "throughput",
                    "profile",
                    "causes",
                    "idleness",
                    "builds",
                    "cascades",
                    "activations",
                    "family",
                    "compressions",
                    "training",
                    "costs",
                    "results",
                    "streams",
                    "not_run",
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
        # of many results a page for each model, and `page` is the index; otherwise none
        pages=kept_here(update(collect("reports/pages/{model}.html", model=PAGED))),
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
        paged=PAGED,
        libraries=versions_of("altair", "vl-convert-python"),
    script:
        "../scripts/render_report.py"

rule render_graph:
    input:
        unpack(graph_inputs),
    output:
        record=ensure("reports/{model}/graphs/{graph}.json", non_empty=True),
        picture=ensure("reports/{model}/graphs/{graph}.svg", non_empty=True),
        structure=ensure("reports/{model}/graphs/{graph}.onnx", non_empty=True),
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

use rule build_pytorch as build_numpy with:
    input:
        source="artifacts/{model}/model.simplified.onnx",
    output:
        manifest="artifacts/{model}/engines/{device}-numpy-{rest}/engine.json",
    log:
        "<logs>/build_numpy/{model}-{device}-{rest}.log",
    params:
        code=engine_code("numpy"),
        variant="{device}-numpy-{rest}",
        options=options_of("numpy"),
        libraries=versions_of("onnx"),

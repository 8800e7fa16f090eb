"""Names in the record of a graph, also for what draws it and reads no ONNX file."""

# of operators that compute in no floating point or quantized format, or in an unknown one
OTHER = "other"
FORMATS = {"FLOAT": "fp32", "FLOAT16": "fp16", "BFLOAT16": "bf16"}
# of operators that several layers read, as the mask of padding, before the first layer
SHARED = ""

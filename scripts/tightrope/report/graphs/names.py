"""Names in graph records, also for drawing code that reads no ONNX file."""

# format of operators that compute in no floating-point or quantized format, or an unknown one
OTHER = "other"
FORMATS = {"FLOAT": "fp32", "FLOAT16": "fp16", "BFLOAT16": "bf16"}
# layer of operators that several layers consume, such as the padding mask; it comes first
SHARED = ""

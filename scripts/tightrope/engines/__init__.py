"""One module per runtime, with `SPEC`, `build` and `load`; only that module imports the runtime.

- `build`, `load`: their callers, in a supervised child and with verified files
- `pytorch`, `torchscript`, `compile`, `inductor`, `onnxruntime`, `openvino`, `tvm`, `tensorrt`
- `onnxruntime_gpu`, `tensorrt_*`, `tvm_programs`: parts of one engine
- `kernel_times`: times of the kernels that any engine runs on a GPU
"""

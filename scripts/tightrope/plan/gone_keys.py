"""Keys that an earlier version had, and what takes their place."""

from fnmatch import fnmatchcase

# by the key, in which * is the name of a model
GONE = {
    "builds": "builds of one engine differ for TVM alone; latency: {loads: 2} loads each twice",
    "cascades": 'choose one model by the table "Smaller models" of the report',
    "engines.onnxruntime_tensorrt": (
        "use engines: {onnxruntime: [fp16]} with onnxruntime: {provider: tensorrt}"
    ),
    "engines.torch_tensorrt": "use engines: {tensorrt: [fp16]}",
    "models.*.compress": "say prune: {target: 2x}, a model for each target (docs/pruning.md)",
    "models.*.sparsity": "say train: {sparsity: 0.8}, the share of the weights that becomes zero",
    "search_seconds": "leave it out, the search of int8-auto has a handful of trials",
    "torch_tensorrt": "use tensorrt: {optimization_level: 3}",
    "tvm": "leave it out, TVM tunes no more; its engine is engines: {tvm: [fp32]}",
}


def instead_of(key: str) -> str | None:
    """Return what to do in place of a key that is gone, None for any other key."""
    return next((words for gone, words in GONE.items() if fnmatchcase(key, gone)), None)

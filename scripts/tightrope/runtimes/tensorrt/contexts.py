"""Execution contexts of TensorRT engines: shapes, and the layers that run at them."""

import numpy as np
import tensorrt as trt
import torch

from tightrope.errors import WorkFailed
from tightrope.runtimes.tensorrt.profiles import Shape


def there(context: trt.IExecutionContext | None) -> trt.IExecutionContext:
    """Return the context; raise a transient WorkFailed where TensorRT could not create it."""
    if context is None:
        raise WorkFailed("TensorRT could not make a context: GPU out of memory", transient=True)
    return context


def set_shapes(context: trt.IExecutionContext, profile: int, shapes: dict[str, Shape]) -> None:
    """Select the profile and set the shape of each input."""
    stream = torch.cuda.current_stream()
    succeeded(context.set_optimization_profile_async(profile, stream.cuda_stream), "a profile")
    stream.synchronize()
    for name, shape in shapes.items():
        succeeded(context.set_input_shape(name, shape), f"the shape {shape} of {name}")


def succeeded(answer: bool, what: str) -> None:
    """Raise RuntimeError where TensorRT, which raises nothing itself, returned False."""
    if not answer:
        raise RuntimeError(f"TensorRT refused {what} (the log of this job says why)")


def layer_information(engine: trt.ICudaEngine, number: int, shapes: dict[str, Shape]) -> str:
    """Return the inspector's layer information as JSON, at these shapes in a profile."""
    inspector = engine.create_engine_inspector()
    # the inspector reports types only for a context with shapes
    context = there(engine.create_execution_context())
    inspector.execution_context = context
    set_shapes(context, number, shapes)
    # they are read where the shapes of other tensors follow from them
    kept = {name: np.array(sizes, np.int64) for name, sizes in tuned_sizes(engine, number).items()}
    for name, sizes in kept.items():
        succeeded(context.set_tensor_address(name, sizes.ctypes.data), f"the sizes of {name}")
    return inspector.get_engine_information(trt.LayerInformationFormat.JSON)


def tuned_sizes(engine: trt.ICudaEngine, number: int) -> dict[str, Shape]:
    """Return the tuned values of each input that holds sizes."""
    return {
        name: tuple(engine.get_tensor_profile_values(number, name)[1])
        for name in inputs_of(engine)
        if engine.is_shape_inference_io(name)
    }


def inputs_of(engine: trt.ICudaEngine) -> list[str]:
    """Return the names of the inputs of an engine."""
    names = map(engine.get_tensor_name, range(engine.num_io_tensors))
    return [name for name in names if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT]

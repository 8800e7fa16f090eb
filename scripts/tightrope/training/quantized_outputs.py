"""Fake-quantize outputs and skip connections too, as a file does whose repair quantizes outputs.

ONNX Runtime's quantizer gives the quantized tensor to all that read it, and quantizes the output of
each operator with weights: of MatMul, which is a linear layer with several rows per example, before
its bias is added, and of a convolution behind the normalization, which is folded into it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

# ends the key of the quantizer of an output; in no name of a module
OUTPUT = " output"
Hook = Callable[[Any, tuple[torch.Tensor, ...]], tuple[torch.Tensor, ...]]


class Place(NamedTuple):
    """Where the output of a module is quantized: what `module` returns, there `before_bias`."""

    module: str
    before_bias: bool = False


Places = dict[str, Place]


def places_of(model: Any, inputs: Mapping[str, torch.Tensor]) -> Places:
    """Return the place of each linear layer and convolution that the model runs on `inputs`."""
    places: Places = {}
    made: dict[tuple[int, int | None], tuple[str, torch.Tensor]] = {}

    def ran(name: str, module: Any, output: torch.Tensor) -> None:
        # it becomes MatMul and Add, which is no Gemm and no convolution
        linear = isinstance(module, torch.nn.Linear) and module.bias is not None
        places.setdefault(name, Place(name, linear and output.ndim > 2))
        if isinstance(module, torch.nn.Conv2d):
            made[version_of(output)] = name, output

    def normalizes(name: str, values: torch.Tensor) -> None:
        if found := made.get(version_of(values)):
            places[found[0]] = Place(name)

    with torch.no_grad(), ExitStack() as stack:
        for name, module in model.named_modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
                hook = module.register_forward_hook(
                    lambda module, _, output, name=name: ran(name, module, output)
                )
            elif isinstance(module, torch.nn.BatchNorm2d):
                hook = module.register_forward_pre_hook(
                    lambda _, read, name=name: normalizes(name, read[0])
                )
            else:
                continue
            stack.callback(hook.remove)
        model(**inputs)
    return places


def product_of(module: Any, output: torch.Tensor, place: Place) -> torch.Tensor:
    """Return what is quantized of the output of a module."""
    return output - module.bias if place.before_bias else output


def version_of(values: torch.Tensor) -> tuple[int, int | None]:
    """Return what tells a tensor from others while it is kept, and from itself after a change."""
    return id(values), None if values.is_inference() else values._version


@contextmanager
def observed_outputs(
    model: Any, places: Places, observe: Callable[[str, torch.Tensor], None]
) -> Iterator[None]:
    """Call `observe` with the key of each output and what is quantized of it."""
    with ExitStack() as stack:
        for name, place in places.items():
            module = model.get_submodule(name)
            hook = model.get_submodule(place.module).register_forward_hook(
                lambda _, read, output, name=name, module=module, place=place: observe(
                    name + OUTPUT, product_of(module, output, place)
                )
            )
            stack.callback(hook.remove)
        yield


class RoundedOnce(TorchFunctionMode):
    """Lets each function read a tensor as quantized once a module has read or returned it so."""

    def __init__(self) -> None:
        super().__init__()
        # with the tensor itself, so that no other gets its id
        self.known: dict[tuple[int, int | None], tuple[torch.Tensor, torch.Tensor]] = {}

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call `function` with quantized tensors."""
        args, kwargs = tree_map_only(torch.Tensor, self.quantized, (args, kwargs or {}))
        return function(*args, **kwargs)

    def quantized(self, values: torch.Tensor) -> torch.Tensor:
        """Return the quantized values where there are any, else the values."""
        return self.known.get(version_of(values), (values, values))[1]

    def rounded(self, quantizer: Any, values: torch.Tensor) -> torch.Tensor:
        """Return the values as quantized by the first quantizer that gets them."""
        if version_of(values) not in self.known:
            made = quantizer(values)
            self.known |= {version_of(one): (one, made) for one in (values, made)}
        return self.quantized(values)

    def read(self, module: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        """Return the inputs of a module with the first one quantized."""
        return (self.rounded(module.input_quantizer, inputs[0]), *inputs[1:])

    def wrapped(self, forward: Any) -> Any:
        """Return `forward` of a model in this mode, which forgets all tensors after each call."""

        def call(*inputs: Any, **named: Any) -> Any:
            try:
                with self:
                    return forward(*inputs, **named)
            finally:
                self.known.clear()

        return call


@contextmanager
def quantized_outputs(model: Any, quantizers: Mapping[str, Any], places: Places) -> Iterator[Hook]:
    """Quantize outputs where `places` are; yield the hook that quantizes the input of a module."""
    once = RoundedOnce()
    with ExitStack() as stack:
        model.forward = once.wrapped(model.forward)
        stack.callback(delattr, model, "forward")
        for name, place in places.items():
            module = model.get_submodule(name)
            module.output_quantizer = quantizers[name + OUTPUT]
            stack.callback(delattr, module, "output_quantizer")
            hook = partial(quantized_output, once, module, place)
            stack.callback(model.get_submodule(place.module).register_forward_hook(hook).remove)
        yield once.read


def quantized_output(
    once: RoundedOnce, module: Any, place: Place, _: Any, inputs: Any, output: torch.Tensor
) -> torch.Tensor:
    """Return the quantized output of a module, as the hook behind `place`."""
    if place.before_bias:
        return module.output_quantizer(product_of(module, output, place)) + module.bias
    return once.rounded(module.output_quantizer, output)

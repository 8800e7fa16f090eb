"""Fine-tune a model whose linear layers and convolutions compute with quantized values.

What is left is the float model: its weights, and the range of each activation that it learnt. The
formulas are those by which `tightrope.int8` quantizes an ONNX file.

Outputs and skip connections are quantized too as in a file whose repair quantizes outputs. ONNX
Runtime's quantizer gives the quantized tensor to all that read it, and quantizes the output of each
operator with weights: of MatMul, which is a linear layer with several rows per example, before its
bias is added, and of a convolution behind the normalization, which is folded into it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from tightrope.errors import TightropeError
from tightrope.onnx.edit import SMALLEST_SCALE
from tightrope.training.examples import Subject
from tightrope.training.loop import History, fine_tune
from tightrope.training.recipe import Recipe

# AdamW moves a parameter by about the learning rate per step; ranges move faster than weights and
# in proportion to their size (Jain et al. 2020, "Trained Quantization Thresholds", section 5.2)
RANGE_RATE = 100.0
# training examples on which the first ranges are calibrated, by their lowest and highest value
SAMPLES = 256
# least channels, and of E4M3 their divisor, of what TensorRT quantizes (`int8/schemes.py`)
CHANNELS = 16
# ends the key of the quantizer of an output; in no name of a module
OUTPUT = " output"


class Grid(NamedTuple):
    """Values that a scheme can hold, in multiples of a scale.

    `activations` is the largest multiple, the smallest is its negative, or 0 where they are not
    `symmetric`. `weights` is that of the weights, which are symmetric. `float8` is E4M3. Where
    activations are `centered`, 0 is the middle of their range, so that a single factor is learnt.
    """

    activations: float
    weights: float
    symmetric: bool = False
    float8: bool = False
    centered: bool = False

    def rounding(self, values: torch.Tensor) -> torch.Tensor:
        """Return the nearest values of the type, float32; those of E4M3 are at most 448."""
        return values.to(torch.float8_e4m3fn).float() if self.float8 else values.round()


# by the names in `tightrope.int8.schemes`
GRIDS = {
    "u8s8": Grid(255, 127),
    "u8s7": Grid(255, 64),
    "s8s8": Grid(127, 127, symmetric=True),
    "e4m3": Grid(448, 448, symmetric=True, float8=True),
}
# of files that round outputs too, which are those of ONNX Runtime: u8 around 128 is its symmetric
GRIDS_WITH_OUTPUTS = {
    "u8s8": GRIDS["u8s8"],
    "u8s7": GRIDS["u8s7"],
    "s8s8": Grid(255, 127, centered=True),
}


class InputQuantizer(torch.nn.Module):
    """Fake-quantizes an activation with one learnt range for the whole tensor.

    A range starts as calibrated and is multiplied by a learnt factor, of each end where the scheme
    is not symmetric. The gradient is that of Learned Step Size Quantization (Esser et al. 2020,
    equations 2 and 3, and section 2.2 for its size).
    """

    def __init__(self, grid: Grid, low: float, high: float) -> None:
        """Start from the calibrated range [low, high], extended to include 0."""
        super().__init__()
        low, high = min(low, 0.0), max(high, 0.0)
        one_factor = grid.symmetric or grid.centered
        if one_factor:
            low, high = -max(-low, high), max(-low, high)
        self.grid = grid
        self.calibrated = torch.nn.Buffer(torch.tensor([low, high]))
        self.logarithms = torch.nn.Parameter(torch.zeros(1 if one_factor else 2))

    def range(self, gradient: float = RANGE_RATE) -> torch.Tensor:
        """Return [low, high], float32; `gradient` is that of the logarithms of both."""
        moved = self.logarithms * gradient
        return self.calibrated * (moved + (self.logarithms * RANGE_RATE - moved).detach()).exp()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Return the dequantized values, float32 of the same shape."""
        low, high = self.range(1 / math.sqrt(values.numel() * self.grid.activations))
        if self.grid.symmetric:
            scale, zero = in_float16(high / self.grid.activations), torch.zeros_like(high)
            lowest = -self.grid.activations
        else:
            scale = ((high - low) / self.grid.activations).clamp_min(SMALLEST_SCALE)
            zero, lowest = rounded(-low / scale, torch.round), 0.0
        steps = values.float() / scale
        held = steps.clamp(lowest - zero, self.grid.activations - zero)
        return rounded(held, self.grid.rounding) * scale


class WeightQuantizer(torch.nn.Module):
    """Fake-quantizes weights by their largest absolute value per output channel.

    E4M3 has one scale for the whole tensor. The gradient of the weights is that of the result.
    """

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.grid = grid

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the dequantized weight [outputs, ...]."""
        exact = weight.detach()
        axes = range(exact.ndim) if self.grid.float8 else range(1, exact.ndim)
        scale = exact.abs().amax(dim=tuple(axes), keepdim=True) / self.grid.weights
        scale = in_float16(scale) if self.grid.symmetric else scale.clamp_min(SMALLEST_SCALE)
        held = (exact / scale).clamp(-self.grid.weights, self.grid.weights)
        return weight + (self.grid.rounding(held) * scale - exact)


def rounded(values: torch.Tensor, rounding: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """Return the rounded values, with the gradient of the exact ones (straight-through)."""
    return values + (rounding(values) - values).detach()


def in_float16(scale: torch.Tensor) -> torch.Tensor:
    """Return a scale that is exact in float16, as TensorRT's files have it."""
    return rounded(scale.clamp_min(SMALLEST_SCALE), lambda exact: exact.half().float())


class Place(NamedTuple):
    """Where the output of a module is quantized: what `module` returns, there `before_bias`."""

    module: str
    before_bias: bool = False


Places = dict[str, Place]


def places_of(model: Any, inputs: Mapping[str, torch.Tensor]) -> Places:
    """Return the place of each linear layer and convolution that the model runs on `inputs`."""
    places: Places = {}
    made: dict[tuple[int, int | None], tuple[str, torch.Tensor]] = {}

    def ran(name: str, module: Any, _: Any, output: torch.Tensor) -> None:
        # it becomes MatMul and Add, which is no Gemm and no convolution
        linear = isinstance(module, torch.nn.Linear) and module.bias is not None
        places.setdefault(name, Place(name, linear and output.ndim > 2))
        if isinstance(module, torch.nn.Conv2d):
            made[version_of(output)] = name, output

    def normalizes(name: str, _: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        if found := made.get(version_of(inputs[0])):
            places[found[0]] = Place(name)

    with torch.no_grad(), ExitStack() as stack:
        for name, module in model.named_modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
                noted = partial(ran, name)
                stack.enter_context(module.register_forward_hook(noted))
            elif isinstance(module, torch.nn.BatchNorm2d):
                noted = partial(normalizes, name)
                stack.enter_context(module.register_forward_pre_hook(noted))
        model(**inputs)
    return places


def product_of(module: Any, output: torch.Tensor, place: Place) -> torch.Tensor:
    """Return what is quantized of the output of a module."""
    return output - module.bias if place.before_bias else output


def version_of(values: torch.Tensor) -> tuple[int, int | None]:
    """Return what tells a tensor from others while it is kept, and from itself after a change."""
    return id(values), None if values.is_inference() else values._version


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

    def wrapped(self, forward: Any) -> Any:
        """Return `forward` of a model in this mode, which forgets all tensors after each call."""

        def call(*inputs: Any, **named: Any) -> Any:
            try:
                with self:
                    return forward(*inputs, **named)
            finally:
                self.known.clear()

        return call


Quantizers = dict[str, InputQuantizer]


def fine_tune_quantized(
    subject: Subject, recipe: Recipe, *, device: str, **options: Any
) -> tuple[History, dict[str, Any]]:
    """Train the model of `subject` as `fine_tune` does, fake-quantized by `scheme` of the recipe.

    The properties also hold `ranges`: [low, high] of the input of each quantized module, by name,
    and where the recipe has `outputs` those of their outputs in `outputs`. Normalization and
    dropout are as in evaluation. Raises TightropeError where the model has no module to quantize,
    or as `fine_tune` does.
    """
    model, outputs = subject.model.eval().to(device), bool(recipe.get("outputs"))
    grid = (GRIDS_WITH_OUTPUTS if outputs else GRIDS)[recipe["scheme"]]
    places = places_of(model, inputs_of(subject, 0, device)) if outputs else None
    quantizers = calibrated(subject, grid, device, places)

    def prepare(trained: Any, on: str) -> None:
        subject.prepare(trained, on)
        trained.eval()

    with fake_quantized(model, quantizers, grid, places):
        trained = replace(subject, prepare=prepare)
        history, properties = fine_tune(trained, recipe, device=device, **options)
    learnt = {name: one.range().tolist() for name, one in quantizers.items()}
    ranges = {name: pair for name, pair in learnt.items() if not name.endswith(OUTPUT)}
    if places is not None:
        properties |= {"outputs": {name: learnt[name + OUTPUT] for name in places}}
    return history, {**properties, "ranges": ranges}


@contextmanager
def fake_quantized(
    model: Any, quantizers: Quantizers, grid: Grid, places: Places | None = None
) -> Iterator[None]:
    """Quantize weights and inputs of the named modules; leave nothing of that behind.

    With `places` also outputs, and what else reads these tensors. The quantizers are in
    `named_parameters` of the model meanwhile, so they are trained and saved with it.
    """
    once = RoundedOnce()

    def read(module: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        quantizer, values = module.input_quantizer, inputs[0]
        made = quantizer(values) if places is None else once.rounded(quantizer, values)
        return (made, *inputs[1:])

    def returned(module: Any, place: Place, _: Any, inputs: Any, output: torch.Tensor) -> Any:
        if place.before_bias:
            return module.output_quantizer(product_of(module, output, place)) + module.bias
        return once.rounded(module.output_quantizer, output)

    with ExitStack() as stack:
        if places is not None:
            model.forward = once.wrapped(model.forward)
            stack.callback(delattr, model, "forward")
        for name, place in (places or {}).items():
            module = model.get_submodule(name)
            module.output_quantizer = quantizers[name + OUTPUT]
            stack.callback(delattr, module, "output_quantizer")
            hook = partial(returned, module, place)
            stack.enter_context(model.get_submodule(place.module).register_forward_hook(hook))
        for name in (name for name in quantizers if not name.endswith(OUTPUT)):
            module = model.get_submodule(name)
            module.input_quantizer = quantizers[name]
            stack.callback(delattr, module, "input_quantizer")
            stack.enter_context(module.register_forward_pre_hook(read))
            parametrize.register_parametrization(module, "weight", WeightQuantizer(grid))
            stack.callback(
                parametrize.remove_parametrizations, module, "weight", leave_parametrized=False
            )
        yield


def inputs_of(subject: Subject, index: int, device: str) -> dict[str, torch.Tensor]:
    """Return the inputs of one example, a batch of 1."""
    arrays, _ = subject.batch([index])
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def calibrated(
    subject: Subject, grid: Grid, device: str, places: Places | None = None
) -> Quantizers:
    """Return a quantizer for each module to quantize; modules that read one tensor share theirs.

    With `places` also those of outputs, whose keys end with OUTPUT; a module that reads the output
    of another shares its quantizer. What a file for TensorRT keeps in float has none without them.
    Examples are run one by one, so that none of them is padded.
    """
    model, given = subject.model, set[int]()
    # the module that reads the tensor of each first, and the lowest and highest value of its tensor
    firsts: dict[str, str] = {}
    bounds: dict[str, tuple[float, float]] = {}
    # the tensors are kept until the end of a call, so that no other gets the id of one
    readers: dict[tuple[int, int | None], tuple[str, torch.Tensor]] = {}

    def observe(name: str, values: torch.Tensor) -> None:
        reader, _ = readers.setdefault(version_of(values), (name, values))
        first = firsts.setdefault(name, reader)
        low, high = (end.item() for end in values.aminmax())
        known = bounds.get(first, (low, high))
        bounds[first] = min(low, known[0]), max(high, known[1])

    def reads(name: str, module: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        in_file = places is not None or not grid.symmetric
        if in_file or not stays_in_float(module, inputs[0], grid, given=given):
            observe(name, inputs[0])

    def returns(name: str, place: Place, _: Any, inputs: Any, output: torch.Tensor) -> None:
        observe(name + OUTPUT, product_of(model.get_submodule(name), output, place))

    with torch.no_grad(), ExitStack() as stack:
        for name, module in model.named_modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Conv2d):
                stack.enter_context(module.register_forward_pre_hook(partial(reads, name)))
        for name, place in (places or {}).items():
            module = model.get_submodule(place.module)
            stack.enter_context(module.register_forward_hook(partial(returns, name, place)))
        for index in range(min(SAMPLES, len(subject.rows))):
            inputs = inputs_of(subject, index, device)
            given |= {tensor.data_ptr() for tensor in inputs.values()}
            model(**inputs)
            given.clear()
            readers.clear()
    if not firsts:
        raise TightropeError(
            f"qat: {type(model).__name__} has no linear layer or convolution to quantize"
        )
    shared = {first: InputQuantizer(grid, *pair) for first, pair in bounds.items()}
    return {name: shared[first] for name, first in firsts.items()}


def stays_in_float(module: Any, values: torch.Tensor, grid: Grid, *, given: set[int]) -> bool:
    """Return whether a file for TensorRT keeps the module in float, see `int8/schemes.py`."""
    if isinstance(module, torch.nn.Conv2d):
        depthwise = module.groups > 1 and module.weight.shape[1] == 1
        return depthwise or values.data_ptr() in given
    sizes = module.weight.shape
    one_row = values.ndim == 2
    return (
        one_row or min(sizes) < CHANNELS or (grid.float8 and any(size % CHANNELS for size in sizes))
    )

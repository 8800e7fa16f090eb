"""Move layout changes of a TVM program to where they cost nothing.

A permutation or reshape of the input of an elementwise function becomes one of its output. So the
layout changes of consecutive channels-last convolutions meet and cancel, and the epilogue of a
matrix product runs on its tiles while they are in registers.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from tvm import ir, relax
from tvm.relax.expr_functor import PyExprMutator, mutator

PERMUTATION, SHAPE, MEAN = "relax.permute_dims", "relax.reshape", "relax.mean"
ELEMENTWISE = {
    "relax.add",
    "relax.subtract",
    "relax.multiply",
    "relax.divide",
    "relax.power",
    "relax.maximum",
    "relax.minimum",
    "relax.clip",
    "relax.abs",
    "relax.negative",
    "relax.exp",
    "relax.erf",
    "relax.sqrt",
    "relax.rsqrt",
    "relax.tanh",
    "relax.sigmoid",
    "relax.nn.relu",
    "relax.nn.gelu",
    "relax.nn.gelu_tanh",
    "relax.nn.silu",
}


def settled(module: ir.IRModule) -> ir.IRModule:
    """Return the module with layout changes moved after elementwise functions and merged."""
    mover = Mover(module)
    mover.builder_.update_func(module.get_global_var("main"), mover.visit_expr(module["main"]))
    return relax.transform.DeadCodeElimination()(mover.builder_.get())


@mutator
class Mover(PyExprMutator):  # type: ignore[misc]  # TVM has no types
    """Rebuilds a function call by call."""

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """Return `call` on its rewritten arguments, or an equivalent expression."""
        call = self.builder_.normalize(super().visit_call_(call))
        name = operator(call)
        if name == PERMUTATION:
            return self.permuted(call.args[0], axes_of(call))
        if name == SHAPE:
            return self.reshaped(call.args[0], shape_of(call))
        if name == MEAN:
            return self.mean(call)
        return self.moved(call) if name in ELEMENTWISE else call

    def permuted(self, x: relax.Expr, axes: list[int]) -> relax.Expr:
        """Permute `x`, merged with the permutation that produced `x`, if any."""
        made = self.made_by(x, PERMUTATION)
        if made is not None:
            first = axes_of(made)
            x, axes = made.args[0], [first[axis] for axis in axes]
        return x if axes == sorted(axes) else relax.op.permute_dims(x, axes)

    def reshaped(self, x: relax.Expr, shape: list[int]) -> relax.Expr:
        """Reshape `x`, merged with the reshape that produced `x`, if any."""
        made = self.made_by(x, SHAPE)
        x = x if made is None else made.args[0]
        return x if shape_of(x) == shape else relax.op.reshape(x, shape)

    def mean(self, call: relax.Call) -> relax.Expr:
        """Take the mean before a permutation where the remaining axes keep their order."""
        made = self.made_by(call.args[0], PERMUTATION)
        if made is None or call.attrs.keepdims or not call.attrs.axis:
            return call
        order = axes_of(made)
        over = [order[int(axis)] for axis in call.attrs.axis]
        rest = [axis for axis in order if axis not in over]
        return relax.op.mean(made.args[0], over) if rest == sorted(rest) else call

    def moved(self, call: relax.Call) -> relax.Expr:
        """Move the elementwise `call` before a layout change that all its arguments share."""
        for change in self.changes(call):
            arguments = [self.before(x, change) for x in call.args]
            if any(x is None for x in arguments):
                continue
            inner = self.builder_.normalize(relax.Call(call.op, arguments, call.attrs))
            earlier = self.builder_.emit(self.moved(inner))
            if operator(change) == PERMUTATION:
                return self.permuted(earlier, axes_of(change))
            return self.reshaped(earlier, shape_of(call))
        return call

    def changes(self, call: relax.Call) -> Iterator[relax.Call]:
        """Yield a permutation, then a reshape that adds axes, that produced an argument of `call`.

        Reshapes that remove axes are excluded: they would be moved back and forth without end.
        """
        shape = shape_of(call)
        for kind, most in ((PERMUTATION, len(shape)), (SHAPE, len(shape) - 1)):
            made = (self.made_by(x, kind) for x in call.args)
            whole = (one for one in made if one is not None and shape_of(one) == shape)
            yield from islice((one for one in whole if len(shape_of(one.args[0])) <= most), 1)

    def before(self, x: relax.Expr, change: relax.Call) -> relax.Expr | None:
        """Return the argument `x` as it is before `change`, None where that is impossible."""
        shape, kind = shape_of(x), operator(change)
        if not shape or set(shape) == {1}:
            return x
        if kind == PERMUTATION:
            made = self.made_by(x, kind)
            same = made is not None and axes_of(made) == axes_of(change)
            return made.args[0] if made is not None and same else None
        earlier, later = shape_of(change.args[0]), shape_of(change)
        if shape == later:
            return self.builder_.emit(self.reshaped(x, earlier))
        # one value per index of the last axis
        return x if shape == earlier[-1:] == later[-1:] else None

    def made_by(self, x: relax.Expr, kind: str) -> relax.Call | None:
        """Return the call of operator `kind` that produced `x`, None if another did."""
        made = self.lookup_binding(x) if isinstance(x, relax.Var) else None
        return made if operator(made) == kind else None


def operator(expression: Any) -> str:
    """Return the name of the called operator, else an empty string."""
    called = expression.op if isinstance(expression, relax.Call) else None
    return called.name if isinstance(called, ir.Op) else ""


def axes_of(call: relax.Call) -> list[int]:
    """Return the axes of a permutation; if not given, they are reversed."""
    count = len(shape_of(call.args[0]))
    axes = call.attrs.axes if call.attrs.axes is not None else reversed(range(count))
    return [int(axis) % count for axis in axes]


def shape_of(x: relax.Expr) -> list[int]:
    """Return the sizes of a tensor, an empty list for anything else."""
    return [int(size) for size in getattr(x.ty, "shape", None) or []]

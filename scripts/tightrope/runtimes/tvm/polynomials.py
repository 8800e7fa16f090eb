"""Lower activations and softmax to polynomials, which vectorize.

The functions of the math library would need one call per number.
"""

import math
from typing import Any

from tvm import relax, tirx, topi


def gelu(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Lower the exact GELU, with its error function as a polynomial."""

    def compute(x: Any) -> Any:
        half = tirx.const(0.5, x.dtype)
        error = topi.fast_erf(topi.multiply(x, tirx.const(0.5**0.5, x.dtype)))
        return topi.multiply(x, topi.add(topi.multiply(error, half), half))

    return builder.call_te(compute, call.args[0], primfunc_name_hint="gelu")


def gelu_tanh(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Lower the tanh GELU, with the tanh as a quotient of polynomials."""

    def compute(x: Any) -> Any:
        cubed = topi.multiply(topi.multiply(x, topi.multiply(x, x)), tirx.const(0.044715, x.dtype))
        inner = topi.multiply(topi.add(x, cubed), tirx.const((2 / math.pi) ** 0.5, x.dtype))
        half = tirx.const(0.5, x.dtype)
        return topi.multiply(x, topi.add(topi.multiply(topi.fast_tanh(inner), half), half))

    return builder.call_te(compute, call.args[0], primfunc_name_hint="gelu_tanh")


def softmax(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Lower the softmax, with its exponential as a polynomial."""
    return builder.call_te(topi.nn.fast_softmax, call.args[0], call.attrs.axis)


def sigmoid(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Lower the sigmoid, with its exponential as a polynomial."""

    def compute(x: Any) -> Any:
        one = tirx.const(1, x.dtype)
        return topi.divide(one, topi.add(topi.fast_exp(topi.negative(x)), one))

    return builder.call_te(compute, call.args[0], primfunc_name_hint="sigmoid")


def tanh(builder: relax.BlockBuilder, call: relax.Call) -> relax.Expr:
    """Lower the tanh to a quotient of polynomials."""
    return builder.call_te(topi.fast_tanh, call.args[0])


# replacements for the default rules of `LegalizeOps`
POLYNOMIALS = {
    "relax.nn.gelu": gelu,
    "relax.nn.gelu_tanh": gelu_tanh,
    "relax.nn.softmax": softmax,
    "relax.sigmoid": sigmoid,
    "relax.tanh": tanh,
}

"""Lower a checkpoint to TVM loops: a module per bucket, with shared weights."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
import tvm
from tvm import relax
from tvm.relax.frontend import detach_params
from tvm.relax.frontend.torch import from_exported_program
from tvm.s_tir import dlight

from tightrope.model.module import example_inputs, logits_module
from tightrope.runtimes.buckets import Bucket, Buckets
from tightrope.runtimes.tvm.schedules import Product, elements, matmul, others, product_of, rows
from tightrope.signature import Signature


def imported(
    source: Path, input_signature: Signature, buckets: Buckets
) -> tuple[dict[Bucket, tvm.IRModule], dict[str, np.ndarray]]:
    """Return a module per bucket, and the weights that all take as inputs in order of the keys."""
    classifier = transposed(logits_module(source, torch.float32, attention="eager"))
    modules: dict[Bucket, tvm.IRModule] = {}
    weights: dict[str, np.ndarray] = {}
    for bucket in buckets.all():
        example = example_inputs(input_signature, bucket[0], bucket[1])
        exported = torch.export.export(classifier, (), kwargs=example)
        module, parameters = detach_params(
            from_exported_program(
                exported, keep_params_as_input=True, unwrap_unit_return_tuple=True
            )
        )
        tensors = parameters.get("main", [])
        names = [variable.name for variable in module["main"].params[-len(tensors) :]]
        modules[bucket] = module
        weights = {
            f"{number:05}.{name}": tensor.numpy()
            for number, (name, tensor) in enumerate(zip(names, tensors, strict=True))
        }
    return modules, weights


class Linear(torch.nn.Module):
    """Linear layer whose weight is [inputs, outputs]."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(layer.weight.detach().t().contiguous(), False)
        self.bias = layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map features [..., inputs] to [..., outputs]."""
        product = torch.matmul(x, self.weight)
        return product if self.bias is None else product + self.bias


def transposed(module: torch.nn.Module) -> torch.nn.Module:
    """Transpose the weights of the linear layers of `module` to [inputs, outputs].

    Else every call of the program would transpose them.
    """
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear:
                setattr(parent, name, Linear(child))
    return module


def lowered(module: tvm.IRModule) -> tvm.IRModule:
    """Lower the module to fused loops, without schedules."""
    passes = [
        relax.transform.CanonicalizeBindings(),
        relax.transform.LegalizeOps(),
        relax.transform.AnnotateTIROpPattern(),
        relax.transform.FoldConstant(),
        relax.transform.FuseOps(),
        relax.transform.FuseTIR(),
        relax.transform.RewriteDataflowReshape(),
        relax.transform.DeadCodeElimination(),
    ]
    return tvm.transform.Sequential(passes)(module)


def scheduled(module: tvm.IRModule) -> tvm.IRModule:
    """Schedule the loops of the module, each function by the first of the rules that fits."""
    rule = dlight.base.ScheduleRule.from_callable("rule")
    return dlight.ApplyDefaultSchedule(*map(rule, (matmul, rows, elements, others)))(module)


def products(module: tvm.IRModule) -> list[Product]:
    """Return the matrix products that a call of "main" runs."""
    functions = {name.name_hint: product_of(loops) for name, loops in module.functions_items()}
    found: list[Product] = []

    def visit(expression: Any) -> None:
        if isinstance(expression, relax.Call) and expression.op.name == "relax.call_tir":
            product = functions[expression.args[0].name_hint]
            if product:
                found.append(product)

    relax.analysis.post_order_visit(module["main"], visit)
    return found

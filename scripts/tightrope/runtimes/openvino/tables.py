"""Embedding tables of an OpenVINO model in float16: half the memory, converted row by row."""

import numpy as np
import openvino
from openvino import opset13

# smaller constants (of shapes, token types) are not worth a conversion
LEAST_BYTES = 1 << 16


def halve_tables(model: openvino.Model) -> None:
    """Store the tables that rows are gathered from in float16, in `model` itself.

    For programs that compute in bf16 or int8: of a table in float32 OpenVINO keeps the file's
    pages, which are twice as many. float16 rounds a value by at most 2^-11 of it, bf16 by 2^-9. A
    table with a value beyond float16 stays as it is.
    """
    for operation in model.get_ordered_ops():
        if operation.get_type_name() != "Gather":
            continue
        table = operation.input_value(0).get_node()
        if table.get_type_name() != "Constant" or table.get_element_type() != openvino.Type.f32:
            continue
        with np.errstate(over="ignore"):
            halves = np.array(table.data, np.float16)
        if table.data.nbytes < LEAST_BYTES or not np.isfinite(halves).all():
            continue
        converted = opset13.convert(opset13.constant(halves), "f32")
        # so that constants are not folded back into one of float32
        converted.get_rt_info()["decompression"] = True
        operation.input(0).replace_source_output(converted.output(0))

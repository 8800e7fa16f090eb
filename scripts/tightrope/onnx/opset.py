"""Read the opset of an ONNX file, and raise it where a type needs a later one."""

import onnx
from onnx import version_converter

from tightrope.errors import TightropeError, in_one_line

# float16's smallest normal number: below it a scale loses precision
SMALLEST_SCALE = 2.0**-14

STANDARD = ("", "ai.onnx")
# the IR version that added float8
IR = 9


def opset_of(model: onnx.ModelProto) -> int:
    """Return the version of ONNX's standard opset."""
    return max(one.version for one in model.opset_import if one.domain in STANDARD)


def at_opset(model: onnx.ModelProto, needed: int) -> onnx.ModelProto:
    """Return a copy of `model` in opset `needed`, or in its current opset where that is later.

    Raises TightropeError naming both opsets where the model cannot be converted.
    """
    found = opset_of(model)
    if found >= needed:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy
    try:
        converted = version_converter.convert_version(model, needed)
    except Exception as error:  # the converter raises no specific class
        raise TightropeError(
            f"opset {found}, {needed} is needed, and the file cannot be converted to it "
            f"({in_one_line(error)}); export it again in opset {needed}"
        ) from error
    converted.ir_version = max(converted.ir_version, IR)
    return converted

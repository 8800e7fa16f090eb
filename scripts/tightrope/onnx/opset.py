"""The version of ONNX's operators in a file, and a later one where a type needs it."""

import onnx
from onnx import version_converter

from tightrope.errors import TightropeError, in_one_line

# float16's smallest normal number: below it a scale loses digits
SMALLEST_SCALE = 2.0**-14

STANDARD = ("", "ai.onnx")
# the intermediate representation that came with float8
IR = 9


def opset_of(model: onnx.ModelProto) -> int:
    """The version of ONNX's own operators."""
    return max(one.version for one in model.opset_import if one.domain in STANDARD)


def at_opset(model: onnx.ModelProto, needed: int) -> onnx.ModelProto:
    """A copy of `model` in that opset, or in its own where that is later.

    Raises TightropeError naming the opset found and the one needed where there is no way to it.
    """
    found = opset_of(model)
    if found >= needed:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        return copy
    try:
        converted = version_converter.convert_version(model, needed)
    except Exception as error:  # those of the converter have no class of their own
        raise TightropeError(
            f"opset {found}, {needed} is needed, and the file cannot be converted to it "
            f"({in_one_line(error)}); export it again in opset {needed}"
        ) from error
    converted.ir_version = max(converted.ir_version, IR)
    return converted

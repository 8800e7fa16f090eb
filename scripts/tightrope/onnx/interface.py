"""Standardize the names, types and sizes of an ONNX file's inputs and outputs."""

import onnx

from tightrope.errors import TightropeError
from tightrope.inputs.arrays import PIXELS
from tightrope.inputs.image_settings import FILE as PROCESSOR
from tightrope.onnx.edit import copy_of, graphs_in
from tightrope.signature import BATCH, SEQUENCE

TOKENS, MASK, SEGMENTS = "input_ids", "attention_mask", "token_type_ids"
INTEGERS = {onnx.TensorProto.INT64, onnx.TensorProto.INT32}


def standardized(
    model: onnx.ModelProto,
    inputs: dict[str, str],
    *,
    source: str,
    size: tuple[int, int] | None = None,
) -> onnx.ModelProto:
    """Return the model with the inputs of the pipeline and the single output `logits`, float32.

    For images of `size` (height, width), the input is `pixel_values`, float32 [batch, 3, height,
    width]. Without a size, for texts, the inputs are `input_ids` and `attention_mask`, int64
    [batch, sequence]. `inputs` maps these and, if present, `token_type_ids`, which become zeros, to
    names in the file. Raises TightropeError for inputs or outputs that do not fit.
    """
    result = copy_of(model)
    if size is None:
        given = text_inputs(result.graph, inputs, source)
        names = {key: inputs[key] for key in (TOKENS, MASK, SEGMENTS) if inputs[key] in given}
        take_inputs(result.graph, given, names, onnx.TensorProto.INT64, [BATCH, SEQUENCE])
    else:
        given = image_input(result.graph, inputs[PIXELS], size, source)
        names = {PIXELS: inputs[PIXELS]}
        take_inputs(result.graph, given, names, onnx.TensorProto.FLOAT, [BATCH, 3, *size])
    rename_output(result.graph, source)
    onnx.checker.check_model(result)
    return result


def take_inputs(
    graph: onnx.GraphProto,
    given: dict[str, onnx.ValueInfoProto],
    names: dict[str, str],
    kind: int,
    shape: list[str | int],
) -> None:
    """Put our inputs, of that type and shape, in the place of those `given`.

    `names` are the names in the file by ours.
    """
    del graph.input[:]
    del graph.value_info[:]
    nodes = []
    ours = {key: "tightrope_zeros" if key == SEGMENTS else key for key in names}
    # first rename away from all names set below: they may be swapped, or used inside the graph
    for key, name in names.items():
        rename(graph, name, f"{key}_as_given")
    for key in names:
        rename(graph, ours[key], f"{ours[key]}_of_the_file")
    for key, name in names.items():
        if key == SEGMENTS:
            nodes.append(onnx.helper.make_node("Sub", [TOKENS, TOKENS], [ours[key]]))
        else:
            graph.input.append(onnx.helper.make_tensor_value_info(key, kind, shape))
        theirs = given[name].type.tensor_type.elem_type
        if theirs == kind:
            rename(graph, f"{key}_as_given", ours[key])
        else:
            cast = onnx.helper.make_node("Cast", [ours[key]], [f"{key}_as_given"], to=theirs)
            nodes.append(cast)
    for node in reversed(nodes):
        graph.node.insert(0, node)


def inputs_by_name(graph: onnx.GraphProto) -> dict[str, onnx.ValueInfoProto]:
    """Return the inputs that callers pass; old files list their weights among the inputs."""
    weights = {tensor.name for tensor in graph.initializer}
    return {one.name: one for one in graph.input if one.name not in weights}


def text_inputs(
    graph: onnx.GraphProto, inputs: dict[str, str], source: str
) -> dict[str, onnx.ValueInfoProto]:
    """Return the graph's inputs by name, checked to be tokens, mask and at most segments."""
    given = inputs_by_name(graph)
    wanted = [inputs[TOKENS], inputs[MASK]]
    missing = [name for name in wanted if name not in given]
    unknown = [name for name in given if name not in (*wanted, inputs[SEGMENTS])]
    if missing or unknown:
        raise TightropeError(
            f"{source}: its inputs are {', '.join(given)}; expected are {', '.join(wanted)} "
            f"(and {inputs[SEGMENTS]}); say its names with the model's key `inputs`"
        )
    for name, value in given.items():
        sizes = [axis.dim_value for axis in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type not in INTEGERS or len(sizes) != 2:
            raise TightropeError(f"{source}: input {name} is no int64 or int32 [batch, sequence]")
        if any(sizes):
            shape = " x ".join(str(size or "any") for size in sizes)
            raise TightropeError(
                f"{source}: input {name} is fixed to {shape}; export it with dynamic axes"
            )
    return given


def image_input(
    graph: onnx.GraphProto, name: str, size: tuple[int, int], source: str
) -> dict[str, onnx.ValueInfoProto]:
    """Return the graph's input; raise TightropeError unless it is that of images.

    That is `name` alone, float32 [batch, 3, height, width], of images of that size.
    """
    given = inputs_by_name(graph)
    if list(given) != [name]:
        raise TightropeError(
            f"{source}: its inputs are {', '.join(given)}; expected is {name} alone; say its name "
            f"with the model's key `inputs: {{{PIXELS}: NAME}}`"
        )
    tensor = given[name].type.tensor_type
    sizes = [axis.dim_value for axis in tensor.shape.dim]
    shape = " x ".join(str(one or "any") for one in sizes)
    if tensor.elem_type != onnx.TensorProto.FLOAT or len(sizes) != 4 or sizes[1] not in (0, 3):
        kind = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        raise TightropeError(
            f"{source}: input {name} is no float32 [batch, 3, height, width] but {kind} {shape}; "
            "export it as one"
        )
    if sizes[0]:
        raise TightropeError(
            f"{source}: input {name} is fixed to {shape}; export it with a dynamic batch"
        )
    if any(own not in (0, wanted) for own, wanted in zip(sizes[2:], size, strict=True)):
        raise TightropeError(
            f"{source}: input {name} is fixed to {shape} (batch x channels x height x width), "
            f"{PROCESSOR} beside it makes {size[0]} x {size[1]} pixels; put the image processor "
            "of this model there"
        )
    return given


def rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Rename a tensor wherever it is written and read, in branches and loops too."""
    for part in graphs_in(graph):
        for node in part.node:
            for names in (node.input, node.output):
                names[:] = [new if name == old else name for name in names]
        for value in part.output:
            if value.name == old:
                value.name = new


def rename_output(graph: onnx.GraphProto, source: str) -> None:
    """Make the output [batch, classes] the only one, named `logits`, in float32."""
    names = [one.name for one in graph.output]
    flat = [one for one in graph.output if len(one.type.tensor_type.shape.dim) == 2]
    chosen = [one for one in flat if one.name == "logits"] or flat
    if len(chosen) != 1:
        raise TightropeError(
            f"{source}: none of its outputs ({', '.join(names)}) is [batch, classes] alone; "
            "export it with the logits only"
        )
    kind = {name: node.op_type for node in graph.node for name in node.output}.get(chosen[0].name)
    if kind in ("Softmax", "Sigmoid"):
        raise TightropeError(f"{source}: its output is probabilities ({kind}); export the logits")
    output = onnx.ValueInfoProto()
    output.CopyFrom(chosen[0])
    if output.name != "logits" or output.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
        rename(graph, "logits", "logits_of_the_file")
        cast = onnx.helper.make_node("Cast", [chosen[0].name], ["logits"], to=1)
        graph.node.append(cast)
    output.name = "logits"
    output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    del graph.output[:]
    graph.output.append(output)


def with_outputs_in(order: list[int], model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a standardized model whose logit i is the given model's logit `order[i]`."""
    result = copy_of(model)
    graph = result.graph
    names = ["tightrope_logits", "tightrope_label_order"]
    rename(graph, "logits", names[0])
    graph.output[0].name = "logits"
    size, kind = [len(order)], onnx.TensorProto.INT64
    graph.initializer.append(onnx.helper.make_tensor(names[1], kind, size, order))
    graph.node.append(onnx.helper.make_node("Gather", names, ["logits"], axis=1))
    onnx.checker.check_model(result)
    return result

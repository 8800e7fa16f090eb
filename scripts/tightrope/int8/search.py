"""int8-auto: plain int8, then SmoothQuant, then the most sensitive operators in float.

The first of these whose answers on the calibration split are within the accuracy budget is taken.
Trials run one model, whose operators with weights compute in int8 or in float by an input of it.
"""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tightrope.artifacts.content import write_artifact
from tightrope.artifacts.files import sha256
from tightrope.errors import TightropeError
from tightrope.inputs.arrays import Arrays, batches_by_length, batches_of_equal_length
from tightrope.inputs.encode import load_encoder, read_split
from tightrope.int8.calibrate import read_cache
from tightrope.int8.quantization_noise import decibels
from tightrope.int8.quantize import quantize_onnx, smoothing_of
from tightrope.int8.ranges import TOKENS
from tightrope.jobs.progress import ProgressBar, Tell, untold
from tightrope.logit_distance import mean_divergence, relative_error
from tightrope.onnx.edit import (
    add_constant,
    constant_of,
    copy_of,
    dequantized_weight,
    needed_operators,
    rows_of,
    set_operators,
    weighted_nodes,
    with_outputs,
)
from tightrope.onnx.file import load_onnx, require_one_file, require_onnx_of
from tightrope.onnx.session import open_model
from tightrope.statistics import accuracy_verdict, paired_difference

SWITCHES = "tightrope_switches"
BATCH = 32
SCHEMA = 2


class SwitchedModel:
    """Session of `source` and its quantized file for any choice of operators in int8.

    It simulates the quantized file in float: values are rounded to those that int8 represents, then
    multiplied and accumulated in float32. `operators` are the names that can be chosen. Raises
    TightropeError where both sets of weights together exceed 2 GiB.
    """

    def __init__(self, source: Path | str, quantized: Path | str, *, threads: int) -> None:
        model, self.operators = with_switches(load_onnx(source), load_onnx(quantized))
        producers = {node.name: node.output[0] for node in model.graph.node}
        self.outputs = {name: producers[name] for name in self.operators}
        model = with_outputs(model, list(self.outputs.values()))
        require_one_file(quantized, model.ByteSize())
        self.session = open_model(model, threads=threads)
        self.logits = model.graph.output[0].name

    def run(self, batch: Arrays, in_int8: Collection[str], *tensors: str) -> list[np.ndarray]:
        """Return logits float32 [batch, classes], then `tensors`, with those operators in int8."""
        switches = np.array([name in in_int8 for name in self.operators])
        return self.session.run([self.logits, *tensors], {**batch, SWITCHES: switches})

    def answers(
        self, rows: Sequence[Arrays], in_int8: Collection[str], tell: Tell = untold
    ) -> np.ndarray:
        """Return logits float32 [rows, classes] of encoded samples; `tell` gets rows per batch."""
        found: dict[int, Any] = {}
        for indices, batch in batches_by_length(rows, BATCH):
            found |= zip(indices, self.run(batch, in_int8)[0], strict=True)
            tell(len(indices))
        return np.stack([found[index] for index in range(len(rows))])


def with_switches(
    source: onnx.ModelProto, quantized: onnx.ModelProto
) -> tuple[onnx.ModelProto, list[str]]:
    """Return the quantized model with an input `SWITCHES`, bool [operators], and their names.

    Each operator is an `If` with an int8 and a float branch; only the chosen branch runs.
    """
    model = copy_of(quantized)
    producers = {name: node for node in model.graph.node for name in node.output}
    floats = {node.name: constant_of(source, node.input[1]) for node in weighted_nodes(source)}
    names: list[str] = []
    nodes: list[onnx.NodeProto] = []
    # outputs of convolutions are quantized too, and consumers read the quantized tensor
    outputs = {}
    for node in model.graph.node:
        quantizer = producers.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        source_of = producers.get(quantizer.input[0]) if quantizer is not None else None
        if source_of is not None and source_of.op_type == "Conv":
            outputs[node.output[0]] = source_of
    given: dict[str, str] = {}
    for node in model.graph.node:
        rounded = dequantized_weight(model, node) if node.name in floats else None
        if rounded is not None:
            pair = [producers[producers[node.input[0]].input[0]], producers[node.input[0]]]
            original = given.get(node.input[0], pair[0].input[0])
            factors = np.reshape(smoothing_of(model, pair[0].input[0]), (-1, 1))
            exact = rows_of(node, rows_of(node, floats[node.name]) / factors)
            quantized_branch = in_int8(model, node, pair, rounded)
            inputs = [original, add_constant(model, f"{node.name}.exact", exact)]
            float_branch = branch(f"{node.name}.float", node, [], inputs)
            # by the switch of the operator
            index, switch = f"{node.name}.index", f"{node.name}.switch"
            place = numpy_helper.from_array(np.array(len(names), np.int64), index)
            model.graph.initializer.append(place)
            branches: dict[str, Any] = {"then_branch": quantized_branch}
            branches["else_branch"] = float_branch
            nodes += [
                helper.make_node("Gather", [SWITCHES, index], [switch], name=switch),
                helper.make_node("If", [switch], node.output, name=node.name, **branches),
            ]
            names.append(node.name)
        else:
            if node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
                node.input[:] = [given.get(name, name) for name in node.input]
            nodes.append(node)
        producer = outputs.get(node.output[0])
        if producer is not None and producer.name in names:
            # that of `node` after Q/DQ, or its own
            name = f"{producer.name}.output"
            inputs = [f"{producer.name}.switch", node.output[0], producer.output[0]]
            nodes.append(helper.make_node("Where", inputs, [name], name=name))
            given[node.output[0]] = name
    switches = helper.make_tensor_value_info(SWITCHES, TensorProto.BOOL, [len(names)])
    model.graph.input.append(switches)
    set_operators(model, needed_operators(model, nodes))
    return model, names


def in_int8(
    model: onnx.ModelProto, node: onnx.NodeProto, pair: list[onnx.NodeProto], weights: np.ndarray
) -> onnx.GraphProto:
    """Return the int8 branch: the operator after its Q/DQ `pair`, with dequantized weights."""
    names = [f"{node.name}.{step}" for step in ("quantized", "dequantized")]
    steps = [
        renamed(pair[0], [*pair[0].input], names[0]),
        renamed(pair[1], [names[0], *pair[1].input[1:]], names[1]),
    ]
    constant = add_constant(model, f"{node.name}.rounded", weights)
    return branch(f"{node.name}.int8", node, steps, [names[1], constant])


def branch(
    name: str, node: onnx.NodeProto, steps: list[onnx.NodeProto], inputs: list[str]
) -> onnx.GraphProto:
    """Return a graph without inputs: the nodes `steps`, then the operator on `inputs`."""
    last = renamed(node, [*inputs, *node.input[2:]], f"{name}.output")
    output = helper.make_tensor_value_info(last.output[0], TensorProto.FLOAT, None)
    return helper.make_graph([*steps, last], name, [], [output])


def renamed(node: onnx.NodeProto, inputs: list[str], output: str) -> onnx.NodeProto:
    """Return a copy of the operator with other input and output tensors."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:], copy.output[:], copy.name = inputs, [output], output
    return copy


@dataclass(frozen=True, kw_only=True)
class Search:
    """Files of a search, and how to search.

    The files are the simplified ONNX model, that quantized by `scheme`, its cache, the calibration
    split and the checkpoint. `smoothquant` is the strength at which the model is smoothed, None for
    no smoothing. The sensitivity of operators is measured on the first `sensitivity_samples` of the
    split.
    """

    onnx: Path | str
    quantized: Path | str
    calibration: Path | str
    data: Path | str
    checkpoint: Path | str
    scheme: str
    smoothquant: float | None
    budget_points: float
    sensitivity_samples: int
    max_sequence: int
    threads: int
    libraries: dict[str, str | None]


def search_operators(search: Search, target: Path | str) -> None:
    """Write the strength of SmoothQuant, which operators stay in float, and every trial.

    A trial holds if its accuracy on the whole calibration split is `kept` within the budget,
    compared with the same model in float. Without labels, an answer counts as correct if it is that
    of the float model. `sensitivity` is None where it was not needed. Raises TightropeError where
    the split is too small to decide whether a budget holds.
    """
    for path in (search.onnx, search.quantized):
        require_onnx_of(path, search.checkpoint)
    examples = read_split(search.data)
    require_enough(search.data, len(examples), search.budget_points)
    rows = load_encoder(search.checkpoint, max_sequence=search.max_sequence)(examples)
    began = time.perf_counter()
    labels = [one["label"] for one in examples] if "label" in examples[0] else None
    judge = Judge(rows, labels, search.budget_points / 100)
    found = searched(judge, search)
    write_artifact(
        target,
        {
            "schema": SCHEMA,
            **found,
            "budget_points": search.budget_points,
            "samples": len(examples),
            "seconds": time.perf_counter() - began,
            "trials": judge.trials,
            "sources": {
                Path(path).name: sha256(path)
                for path in (search.onnx, search.quantized, search.calibration)
            },
            "libraries": search.libraries,
        },
    )


def searched(judge: "Judge", search: Search) -> dict[str, Any]:
    """Return `smoothquant`, `in_float`, the number of `operators`, and their `sensitivity`."""
    model = SwitchedModel(search.onnx, search.quantized, threads=search.threads)
    found = {"operators": len(model.operators), "sensitivity": None}
    if judge.holds(model, None, ()):
        return {**found, "smoothquant": None, "in_float": []}
    # an imported cache has only ranges
    has_channels = bool(read_cache(search.calibration, model=search.onnx)["channels"])
    strength = search.smoothquant if has_channels else None
    if strength is not None:
        with TemporaryDirectory() as folder:
            quantized = Path(folder, "model.onnx")
            files, repair = (search.onnx, search.calibration, quantized), {"smoothquant": strength}
            quantize_onnx(*files, scheme=search.scheme, repair=repair)
            model = SwitchedModel(search.onnx, quantized, threads=search.threads)
        if judge.holds(model, strength, ()):
            return {**found, "smoothquant": strength, "in_float": []}
    few = judge.rows[: search.sensitivity_samples]
    effects = sensitivities(model, few)
    order = sorted(effects, key=lambda name: -effects[name]["kl"])
    holding = (names for names in beginnings(order) if judge.holds(model, strength, names))
    return {
        **found,
        "smoothquant": strength,
        "in_float": sorted(next(holding, order)),
        "sensitivity": {"samples": len(few), "operators": effects},
    }


def beginnings(order: list[str]) -> Iterator[list[str]]:
    """Yield the first 1, 2, 4, 8, … operators of an order, but never all."""
    count = 1
    while count < len(order):
        yield order[:count]
        count *= 2


def require_enough(data: Path | str, samples: int, budget_points: float) -> None:
    """Raise TightropeError where `samples` are too few to decide whether a budget holds."""
    if accuracy_verdict(paired_difference(0, 0, samples), budget_points / 100) != "kept":
        raise TightropeError(
            f"{data}: {samples} calibration examples are too few to tell a loss of "
            f"{budget_points:g} points: enlarge calibration.pool or accuracy_budget_points"
        )


class Judge:
    """Compares answers on the encoded calibration split with those in float; keeps the trials."""

    def __init__(self, rows: Sequence[Arrays], labels: list[int] | None, budget: float) -> None:
        self.rows = rows
        self.labels = labels
        self.budget = budget
        self.trials: list[dict[str, Any]] = []
        # the answers of the model in float
        self.expected: np.ndarray | None = None

    def holds(
        self, model: SwitchedModel, smoothquant: float | None, in_float: Collection[str]
    ) -> bool:
        """Return whether the budget holds with the operators `in_float`, all others in int8."""
        began = time.perf_counter()
        passes = 1 if self.trials else 2
        with ProgressBar(f"trial {len(self.trials) + 1}", passes * len(self.rows)) as bar:
            if self.expected is None:
                self.expected = model.answers(self.rows, (), bar.add).argmax(axis=1)
            in_int8 = set(model.operators) - set(in_float)
            found = model.answers(self.rows, in_int8, bar.add).argmax(axis=1)
        labels = self.expected if self.labels is None else np.array(self.labels)
        gained = int(((found == labels) & (self.expected != labels)).sum())
        lost = int(((found != labels) & (self.expected == labels)).sum())
        change = paired_difference(gained, lost, len(labels))
        trial = {
            "smoothquant": smoothquant,
            "in_float": sorted(in_float),
            "gained": gained,
            "lost": lost,
            "flips": int((found != self.expected).sum()),
            "delta": change.value,
            "delta_low": change.low,
            "delta_high": change.high,
            "verdict": accuracy_verdict(change, self.budget),
            "seconds": time.perf_counter() - began,
        }
        self.trials.append(trial)
        print(
            f"{'int8' if smoothquant is None else f'SmoothQuant {smoothquant:g}'}, "
            f"{len(in_float)} of {len(model.operators)} operators in float: "
            f"{100 * change.value:+.2f} points, {trial['flips']} flips, {trial['verdict']}",
            flush=True,
        )
        return trial["verdict"] == "kept"


def sensitivities(model: SwitchedModel, rows: Sequence[Arrays]) -> dict[str, dict[str, float]]:
    """Return the effect of each operator alone in int8, all others in float, by its name.

    `agreement` (share of unchanged answers), `logit_error` and `kl` as in reports/summary.json,
    `sqnr_db` (signal-to-quantization-noise ratio of the operator's output, decibels).
    """
    logits: dict[str | None, list[Any]] = {name: [] for name in (None, *model.operators)}
    power = {name: np.zeros(2) for name in model.operators}  # signal, noise
    # equal lengths, because padding would count as noise
    batches = list(batches_of_equal_length(rows, tokens=TOKENS))
    with ProgressBar("sensitivity", len(batches) * len(model.operators)) as bar:
        for batch in batches:
            reference, *outputs = model.run(batch, (), *model.outputs.values())
            logits[None] += reference.tolist()
            for name, expected in zip(model.operators, outputs, strict=True):
                answer, found = model.run(batch, (name,), model.outputs[name])
                logits[name] += answer.tolist()
                power[name] += np.square(expected).sum(), np.square(found - expected).sum()
                bar.add()
    return {
        name: {
            # the share of rows with the same answer
            "agreement": float(
                np.mean(np.argmax(logits[None], axis=1) == np.argmax(logits[name], axis=1))
            ),
            "logit_error": relative_error(logits[name], logits[None]) or 0.0,
            "kl": mean_divergence(logits[None], logits[name]),
            "sqnr_db": decibels(*power[name]),
        }
        for name in model.operators
    }

"""Made-up records of a plan, valid and of the usual size, to summarize many of them.

An accuracy record has 1,500 examples of 5 classes, of which a variant answers some otherwise than
the baseline; a latency record has three shapes of ten pairs of blocks. Variants share the numbers
of EIGHT records, since making numbers takes longer than summarizing them.
"""

import json
import random
import shutil
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from tightrope.artifacts.content import checked, write_artifact, writing_artifact
from tightrope.artifacts.files import sha256
from tightrope.artifacts.manifest import write_manifest
from tightrope.records.accuracy import AccuracyRecord, logits_file
from tightrope.records.latency import LatencyRecord
from tightrope.records.race import RaceRecord
from tightrope.summary.inputs import Inputs
from tightrope.variants import QUANTIZED, Variant

Jobs = list[tuple[str, Variant]]

EXAMPLES, CLASSES, EIGHT, FINALISTS = 1500, 5, 8, 3
SIZES = ((1, 64), (1, 128), (16, 128))
HOST = {
    **{"cpu": "A CPU", "isa": ["avx2"], "cores": 2, "memory_bytes": 1, "gpu": None},
    **{"driver": None, "python": "3.11.7"},
}
QUIET = {"waited": 0.0, "stolen": 0.0, "preempted": 0.0, "window": 0}
NAME, MODEL, ENGINE, DATA = "VARIANT-HERE", "MODEL-HERE", "ENGINE-HERE", "DATA-HERE"
BASELINE = "BASELINE-HERE"
TASK = {"task": "text-classification", "source": "random", "labels": [*"abcde"]}


def write_records(jobs: Jobs, baselines: dict[str, dict[str, str]]) -> Inputs:
    """Write all files of the jobs below this folder; return the inputs of the summary."""
    models = list(dict.fromkeys(model for model, _ in jobs))
    checkpoints, splits = zip(*map(write_model, models), strict=True)
    records = {kind: templates(kind) for kind in ("accuracy", "latency")}
    data = {model: sha256(split) for model, split in zip(models, splits, strict=True)}
    found: dict[str, list[Path]] = {"engine": [], "accuracy": [], "latency": [], "audit": []}
    for number, (model, variant) in enumerate(jobs):
        name, baseline = str(variant), baselines[model][variant.device]
        engine = Path(f"artifacts/{model}/engines/{name}/engine.json")
        write_artifact(engine, engine_of(name, variant.precision))
        found["engine"].append(engine)
        own = {NAME: name, MODEL: model, ENGINE: sha256(engine), DATA: data[model]}
        own[BASELINE] = baseline
        for kind, known in records.items():
            path = Path(f"reports/{model}/{name}.{kind}.json")
            path.parent.mkdir(parents=True, exist_ok=True)
            template = known[0 if name == baseline else 1 + number % (EIGHT - 1)]
            text = checked(template, template.read_bytes()).removeprefix(b"{\n").decode()
            with writing_artifact(path) as stream:
                text = reduce(lambda made, pair: made.replace(*pair), own.items(), text)
                stream.write(text.encode())
            if kind == "accuracy":
                shutil.copyfile(logits_file(template), logits_file(path))
            found[kind].append(path)
        if variant.precision in QUANTIZED:
            audit = Path(f"artifacts/{model}/audit/{name}.json")
            write_artifact(audit, audit_of() | {"engine_sha256": own[ENGINE]})
            found["audit"].append(audit)
    places: dict[tuple[str, str], list[str]] = {}
    for model, variant in jobs:
        places.setdefault((model, variant.device), []).append(str(variant))
    races = [write_race(*place, own) for place, own in places.items()]
    return Inputs(
        engines=found["engine"],
        latencies=found["latency"],
        accuracies=found["accuracy"],
        audits=found["audit"],
        checkpoints=checkpoints,
        splits=splits,
        races=races,
    )


def write_model(model: str) -> tuple[Path, Path]:
    """Write checkpoint.json and evaluation.json of a model; return both."""
    checkpoint = Path(f"artifacts/{model}/checkpoint/checkpoint.json")
    checkpoint.parent.mkdir(parents=True)
    checkpoint.with_name("model.safetensors").write_bytes(b"weights")
    checkpoint.with_name("config.json").write_text('{"model_type": "bert", "hidden_act": "gelu"}')
    made = {"parameters": 1, "architecture": None, "max_sequence": None, "training": None}
    write_manifest(checkpoint, **TASK, **made, recipe=None)
    split = checkpoint.parent.parent / "splits/evaluation.json"
    texts = split.parent.parent / "data/evaluation.jsonl"
    texts.parent.mkdir()
    examples = (json.dumps({"label": n % CLASSES, "text": f"text {n}"}) for n in range(EXAMPLES))
    texts.write_text("\n".join(examples) + "\n")
    listed = {"../data/evaluation.jsonl": {"sha256": sha256(texts), "size_bytes": 1}}
    listed["../data/evaluation.jsonl"]["size_bytes"] = texts.stat().st_size
    rows = {"file": "../data/evaluation.jsonl", "rows": [0, EXAMPLES, 1], "samples": EXAMPLES}
    write_artifact(
        split,
        {**TASK, **rows, "split": "evaluation", "revision": None, "files": listed, "schema": 1},
    )
    return checkpoint, split


def engine_of(name: str, precision: str) -> dict[str, Any]:
    """Return the manifest of an engine."""
    file = {"sha256": "0" * 64, "size_bytes": 10**6}
    return {
        **{"status": "ok", "variant": name, "precision": precision, "options": {}, "sources": {}},
        **{"libraries": {}, "build_s": 1.5, "schema": 1, "files": {"model.onnx": file}},
        "checkpoint": None,
    }


def templates(kind: str) -> list[Path]:
    """Write EIGHT records, the first that of a baseline; return their files."""
    made = accuracy_record if kind == "accuracy" else latency_record
    files = [Path(f"templates/{number}.{kind}.json") for number in range(EIGHT)]
    for number, file in enumerate(files):
        made(number).write(file)
    return files


def identity() -> dict[str, Any]:
    """Return the fields that all records have."""
    known = {"model": MODEL, "variant": NAME, "engine_sha256": ENGINE}
    return {**known, "host": HOST, "libraries": {"onnxruntime": "1.2"}}


def accuracy_record(number: int) -> AccuracyRecord:
    """Return a record whose logits differ from those of number 0 the more the higher it is."""
    draw, own = random.Random(0), random.Random(number)
    rows = [[round(draw.gauss(0, 2), 6) for _ in range(CLASSES)] for _ in range(EXAMPLES)]
    logits = [[one + own.gauss(0, 0.01 * number) for one in row] for row in rows]
    ordered = [sorted(row, reverse=True) for row in logits]
    record = AccuracyRecord(
        **identity(),
        measured="2026-11-26T00:00:00+00:00",
        data_sha256=DATA,
        truncation={"texts": EXAMPLES, "truncated": 3, "max_sequence": 128},
        labels=[max(range(CLASSES), key=row.__getitem__) for row in rows],
        predictions=[max(range(CLASSES), key=row.__getitem__) for row in logits],
        margins=[round(row[0] - row[1], 6) for row in ordered],
    )
    record.logits = np.array(logits, np.float32)
    return record


def latency_record(number: int) -> LatencyRecord:
    """Return a record of three shapes; number 0 is that of a baseline, without one of its own."""
    draw = random.Random(number)

    def blocks(seconds: float) -> list[list[float]]:
        return [[seconds * draw.uniform(0.98, 1.02) for _ in range(6)] for _ in range(10)]

    shapes = [
        {
            "batch": batch,
            "sequence": sequence,
            "first_call_s": 0.02,
            "blocks_s": blocks(0.01 / (1 + number)),
            "baseline_blocks_s": blocks(0.01) if number else None,
            "pairs": [QUIET] * 10,
            "foreign_cores": [0.0],
            "stop": "width",
            "threads_busy": 2,
            "cores_used": 1.9,
            "idle_share": 0.0,
        }
        for batch, sequence in SIZES
    ]
    return LatencyRecord(
        **identity(),
        measured="2026-11-26T00:00:00+00:00",
        threads=2,
        plan={"pairs": 10, "calls": None, "loads": 1},
        processors=[0, 1],
        baseline=BASELINE if number else None,
        load_s=0.3,
        first_call_s=0.02,
        peak_rss_bytes=10**9,
        shapes=shapes,
    )


def audit_of() -> dict[str, Any]:
    """Return an audit of a hundred tensors."""
    shares = dict.fromkeys(("agreement", "commonest", "float_commonest", "chance"), 0.5)
    known = {key: {"value": 0.9, "low": 0.8, "high": 1.0} for key in ("accuracy", "float_accuracy")}
    numbers = ("low", "high", "measured_low", "measured_high", "saturated", "sqnr_db")
    tensors = [
        {
            **{"operator": f"operator {n}", "tensor": f"tensor {n}", "findings": []},
            **dict.fromkeys((*numbers, "channel_ratio", "weight_ratio"), 1.0 + n),
            "levels": 255,
        }
        for n in range(100)
    ]
    answers = {"samples": 128, **shares, **known}
    return {"status": "ok", "reason": None, "answers": answers, "tensors": tensors}


def write_race(model: str, device: str, variants: Iterable[str]) -> Path:
    """Write the race of the last FINALISTS variants of a model; return its path."""
    draw, raced = random.Random(0), list(variants)[-FINALISTS:]
    shapes = [
        {
            **{"batch": batch, "sequence": sequence, "contenders": raced, "pairs": []},
            "blocks_s": {
                name: [[0.002 * (1 + place) * draw.uniform(0.99, 1.01)] for _ in range(24)]
                for place, name in enumerate(raced)
            },
            "facts": {name: [QUIET] * 24 for name in raced},
            "loads": [0] * 12 + [1] * 12,
            **{"foreign_cores": [0.0], "out": {}, "stop": "one left", "seconds": 1.0},
        }
        for batch, sequence in SIZES
    ]
    path = Path(f"reports/{model}/{device}.race.json")
    RaceRecord(
        **{**identity(), "model": model, "variant": "race", "device": device, "threads": 1},
        plan={"pairs": 12, "loads": 1},
        decision={"seconds": 60, "equal_within": 0.02},
        processors=[0],
        engines_sha256={},
        heats=[{"shapes": shapes}],
    ).write(path)
    return path

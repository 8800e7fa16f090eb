"""Make the engines that other optimizers give for a checkpoint, each by its own recipe.

Runs in the environment of the requirements.txt beside it; the README.md there says how.
"""

import argparse
import json
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnxruntime
from openvino import Core
from optimum.intel import OVModelForSequenceClassification
from recipes import RECIPES, Recipe, Source

SCHEMA = 1
PACKAGES = (
    "torch transformers optimum optimum-intel openvino nncf optimum-onnx onnxruntime"
    " olive-ai onnxruntime-genai"
)
PRECISION = "INFERENCE_PRECISION_HINT"  # what decides whether OpenVINO computes fp32 in bf16


def describe_openvino(file: Path) -> dict[str, Any]:
    """Return the inputs and the settings that optimum-intel's class compiles this IR with."""
    loaded = OVModelForSequenceClassification.from_pretrained(file.parent, compile=False)
    compiled = Core().compile_model(loaded.model, "CPU", loaded.ov_config)
    return {
        "runtime": "openvino",
        "inputs": loaded.input_dtypes,
        "shapes": {i.any_name: str(i.partial_shape) for i in loaded.model.inputs},
        "settings": {"device": "CPU", "config": loaded.ov_config},
        # no setting: what the plugin chose where the artifact was made
        "seen_when_made": {PRECISION: compiled.get_property(PRECISION).to_string()},
    }


def describe_onnxruntime(file: Path) -> dict[str, Any]:
    """Return the inputs and the settings that optimum-onnx and Olive open a session with."""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    olive = file.with_name("model_config.json")  # Olive's own record of the model
    config = json.loads(olive.read_text())["config"] if olive.exists() else {}
    session_options = (config.get("inference_settings") or {}).get("session_options", {})
    return {
        "runtime": "onnxruntime",
        "inputs": {i.name: i.type.removeprefix("tensor(")[:-1] for i in session.get_inputs()},
        "shapes": {i.name: str(i.shape) for i in session.get_inputs()},
        "settings": {"providers": ["CPUExecutionProvider"], "session_options": session_options},
    }


def make(name: str, recipe: Recipe, source: Source, output: Path) -> dict[str, Any]:
    """Make one artifact; where that fails, `status` says why and there is no `file`."""
    entry = {"name": name, "tool": recipe.tool, "version": version(recipe.tool)}
    entry["recipe"] = recipe.command
    folder = output / name
    folder.mkdir(parents=True)
    begin = time.perf_counter()
    try:
        recipe.make(source, folder)
        entry["seconds_to_build"] = round(time.perf_counter() - begin, 1)
        file = folder / recipe.file
        is_openvino = file.suffix == ".xml"
        entry |= describe_openvino(file) if is_openvino else describe_onnxruntime(file)
    except Exception as error:  # whatever another tool raises: it is this artifact's result
        return entry | {"status": f"failed: {type(error).__name__}: {error}"}
    weights = [file.with_suffix(".bin")] if is_openvino else []
    size = sum(path.stat().st_size for path in [file, *weights])
    return entry | {"status": "ok", "file": f"{name}/{file.name}", "size_bytes": size}


def read_texts(file: Path, samples: int) -> list[str]:
    """Return the `text` of the first `samples` lines; ValueError where there are fewer."""
    lines = file.read_text().splitlines()[:samples]
    if len(lines) < samples:
        raise ValueError(f"{file} has {len(lines)} lines, {samples} are asked for: --samples fewer")
    return [json.loads(line)["text"] for line in lines]


def link_checkpoint(checkpoint: Path, folder: Path) -> None:
    """Link the checkpoint's files into `folder`, with a tokenizer class that transformers 4 has.

    transformers 5 writes TokenizersBackend, its name for what 4 calls PreTrainedTokenizerFast; the
    tokenizer is tokenizer.json either way. optimum-onnx does not run with transformers 5.
    """
    for file in checkpoint.iterdir():
        (folder / file.name).symlink_to(file)
    config = folder / "tokenizer_config.json"
    text = config.read_text()
    config.unlink()
    config.write_text(text.replace('"TokenizersBackend"', '"PreTrainedTokenizerFast"'))


def main() -> None:
    """Make every artifact and write OUTPUT/peers.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path, help="a transformers sequence classifier")
    parser.add_argument("texts", type=Path, help="JSON lines with a `text` each, for calibration")
    parser.add_argument("output", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--max-sequence", type=int, default=128, help="tokens (default: 128)")
    parser.add_argument("--samples", type=int, default=512, help="texts (default: 512)")
    options = parser.parse_args()
    if options.output.exists():
        parser.error(f"{options.output} exists: give a new folder or remove it")
    texts = read_texts(options.texts, options.samples)
    output = options.output.resolve()
    with tempfile.TemporaryDirectory() as folder:
        link_checkpoint(options.checkpoint.resolve(), Path(folder))
        source = Source(Path(folder), texts, options.max_sequence)
        artifacts = [make(name, recipe, source, output) for name, recipe in RECIPES.items()]
    record = {
        "schema": SCHEMA,
        "packages": {name: version(name) for name in PACKAGES.split()},
        "calibration": {"max_sequence": options.max_sequence, "samples": options.samples},
        "artifacts": artifacts,
    }
    (output / "peers.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    for artifact in artifacts:
        print(f"{artifact['name']}: {artifact['status']}")


if __name__ == "__main__":
    main()

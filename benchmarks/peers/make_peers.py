"""Make the engines that other optimizers give for a model of this project, each by its own recipe.

Runs in the environment of the requirements.txt beside it; the README.md there says how.
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from pathlib import Path
from typing import Any

from recipes import RECIPES, Recipe
from source import MAX_DROP, Source, read_examples

SCHEMA = 1
PACKAGES = (
    "torch transformers optimum optimum-intel openvino nncf optimum-onnx onnxruntime"
    " olive-ai onnxruntime-genai"
)
PRECISION = "INFERENCE_PRECISION_HINT"  # what decides whether OpenVINO computes fp32 in bf16


def describe_openvino(file: Path, tool: str) -> dict[str, Any]:
    """Return the inputs, and the settings that the tool compiles this IR with: NNCF has none."""
    from openvino import Core

    config: dict[str, str] = {}
    if tool == "optimum-intel":
        from optimum.intel import OVModelForSequenceClassification

        loaded = OVModelForSequenceClassification.from_pretrained(file.parent, compile=False)
        config = loaded.ov_config
    model = Core().read_model(file)
    compiled = Core().compile_model(model, "CPU", config)
    return {
        "runtime": "openvino",
        "inputs": {i.any_name: i.element_type.get_type_name() for i in model.inputs},
        "shapes": {i.any_name: str(i.partial_shape) for i in model.inputs},
        "settings": {"device": "CPU", "config": config},
        # no setting: what the plugin chose where the artifact was made
        "seen_when_made": {PRECISION: compiled.get_property(PRECISION).to_string()},
    }


def describe_onnxruntime(file: Path) -> dict[str, Any]:
    """Return the inputs and the settings that optimum-onnx and Olive open a session with."""
    import onnxruntime

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


def make_apart(name: str, recipe: Recipe, source: Source, output: Path) -> dict[str, Any]:
    """Make one artifact in a new process; where that fails, `status` says why, without `file`."""
    entry = {"name": name, "tool": recipe.tool, "version": version(recipe.tool)}
    entry |= {"recipe": recipe.command, "made_from": recipe.made_from}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as process:
        try:
            return entry | process.submit(make, recipe, source, output / name).result()
        except BrokenProcessPool as error:
            return entry | {"status": f"failed: {error}"}


def make(recipe: Recipe, source: Source, folder: Path) -> dict[str, Any]:
    """Run the recipe and return what it made, what that took, and how it is run."""
    folder.mkdir(parents=True)
    begin = time.perf_counter()
    try:
        recipe.make(source, folder)
        cost = {"seconds_to_build": round(time.perf_counter() - begin, 1)}
        cost["peak_rss_bytes"] = peak_rss_bytes()
        file = folder / recipe.file
        is_openvino = file.suffix == ".xml"
        found = describe_openvino(file, recipe.tool) if is_openvino else describe_onnxruntime(file)
    except Exception as error:  # whatever another tool raises: it is this artifact's result
        return {"status": f"failed: {type(error).__name__}: {error}"}
    weights = [file.with_suffix(".bin")] if is_openvino else []
    size = sum(path.stat().st_size for path in [file, *weights])
    place = {"status": "ok", "file": f"{folder.name}/{file.name}", "size_bytes": size}
    return cost | found | place


def peak_rss_bytes() -> int:
    """The highest resident memory so far of this process or of one of its ended children."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(one).ru_maxrss for one in who) * 1024


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
    parser.add_argument("model", type=Path, help="artifacts/MODEL of this project")
    parser.add_argument("output", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--max-sequence", type=int, default=128, help="tokens (default: 128)")
    parser.add_argument("--samples", type=int, default=512, help="to calibrate (default: 512)")
    parser.add_argument("--only", default="", help="words of which one is in the names: nncf,olive")
    options = parser.parse_args()
    if options.output.exists():
        parser.error(f"{options.output} exists: give a new folder or remove it")
    model, output = options.model.resolve(), options.output.resolve()
    examples = read_examples(model / "splits/calibration.json", options.samples)
    with tempfile.TemporaryDirectory() as folder:
        link_checkpoint(model / "checkpoint", Path(folder))
        source = Source(
            Path(folder),
            model / "model.simplified.onnx",
            examples,
            options.samples,
            options.max_sequence,
        )
        artifacts = [
            make_apart(name, recipe, source, output)
            for name, recipe in RECIPES.items()
            if any(word in name for word in options.only.split(","))
        ]
    record = {
        "schema": SCHEMA,
        "packages": {name: version(name) for name in PACKAGES.split()},
        "calibration": {"max_sequence": options.max_sequence, "samples": options.samples},
        "validation": {"max_drop": MAX_DROP, "samples": len(examples)},
        "artifacts": artifacts,
    }
    (output / "peers.json").write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    for artifact in artifacts:
        print(f"{artifact['name']}: {artifact['status']}")


if __name__ == "__main__":
    main()

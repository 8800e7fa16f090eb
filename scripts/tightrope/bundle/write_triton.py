"""Write a model repository of Triton as an archive, with the tokenizer and the result."""

from pathlib import Path

from tightrope.artifacts.files import json_bytes
from tightrope.artifacts.manifest import read_manifest
from tightrope.artifacts.manifest_types import CheckpointManifest, EngineManifest
from tightrope.bundle.subject import require_built, result_of
from tightrope.bundle.triton import engine_files, triton_files
from tightrope.bundle.write import write_archive
from tightrope.summary.document import read_summary

# beside config.pbtxt, as each folder beside the model's is another model to Triton
FOR_CLIENTS = ("tokenizer.json", "preprocessor_config.json")


def write_triton(
    target: Path | str, *, engine: Path, checkpoint: Path, summary: Path, model: str
) -> None:
    """Write the repository of an engine that was built and reported, from the manifests' paths.

    Raises TightropeError as `triton_files` does.
    """
    built = read_manifest(engine, EngineManifest)
    require_built(built)
    made, document = read_manifest(checkpoint, CheckpointManifest), read_summary(summary)
    result = result_of(document, model, built["variant"])
    host = document["hosts"].get(result["host"] or "")
    texts = triton_files(
        model,
        built,
        made["labels"],
        result,
        document["throughput"],
        document["traffic"],
        isa=host["isa"] if host else (),
    )
    files: dict[str, bytes | Path] = {name: text.encode() for name, text in texts.items()}
    files |= {path: engine.parent / name for path, name in engine_files(model, built).items()}
    for name in FOR_CLIENTS:
        if name in made["files"]:
            files[f"{model}/{name}"] = checkpoint.parent / name
    files[f"{model}/result.json"] = json_bytes(dict(result))
    write_archive(target, f"{model}-{built['variant']}-triton", files)

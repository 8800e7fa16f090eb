"""Export a calibration cache to the text format of TensorRT up to 10, or import such a text."""

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tightrope.artifacts.content import IMPORTED, MADE_WITH
from tightrope.int8.tensorrt_cache import VERSION, export_cache, import_cache
from tightrope.jobs.job import print_one_line


def main() -> None:
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    exporting = commands.add_parser("export", help="from a cache to TensorRT's text")
    exporting.add_argument("cache", metavar="CACHE.json")
    exporting.add_argument("text", metavar="TEXT")
    exporting.add_argument(
        "--tensorrt",
        metavar="VERSION",
        default=VERSION,
        help="the TensorRT that will read it, 8601 for 8.6.1 (%(default)s)",
    )
    importing = commands.add_parser("import", help="from TensorRT's text to a cache")
    importing.add_argument("text", metavar="TEXT")
    importing.add_argument("onnx", metavar="MODEL.onnx", help="the model.simplified.onnx")
    importing.add_argument("target", metavar="TARGET.json", help="METHOD-SAMPLES.json")
    for command in (exporting, importing):
        command.add_argument("--force", action="store_true", help="replace an existing file")
    words = parser.parse_args()
    if words.command == "export":
        left_out = export_cache(words.cache, words.text, version=words.tensorrt, force=words.force)
        reason = "zero on every sample"
    else:
        os.environ[MADE_WITH] = IMPORTED
        left_out = import_cache(words.text, words.onnx, words.target, force=words.force)
        reason = f"not in {words.onnx}"
    if left_out:
        print(f"tensors left out: {left_out}, {reason}")


sys.excepthook = print_one_line
if __name__ == "__main__":
    main()

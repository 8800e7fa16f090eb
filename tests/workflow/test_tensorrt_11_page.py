"""docs/tensorrt-11.md: its configuration is planned, its commands run as far as without a GPU."""

import shlex
import shutil
from pathlib import Path

import pytest
import yaml
from checkpoints import make_checkpoint
from page_blocks import block
from programs import printed_in
from splits import prepare_splits, split_of
from tightrope.jobs.child import supervised
from tightrope.onnx.file import load_onnx
from tiny_model import LIMITS
from tiny_project import Project, write_texts

PAGE = "tensorrt-11.md"
CONFIGURATION = block(PAGE, "yaml", "config/mine.yaml")
SOURCE = (
    "scratch:bert?hidden_size=32&num_hidden_layers=2&num_attention_heads=2&intermediate_size=64"
    "&vocab_size=200&max_position_embeddings=512"
)
CACHE = "artifacts/mine/calibration/entropy-512.json"


def commands(first_line: str) -> list[list[str]]:
    """The words of each command of that block of the page."""
    lines = block(PAGE, "sh", first_line).replace("\\\n", "").splitlines()[1:]
    return [shlex.split(line) for line in lines]


def write_own(folder: Path) -> None:
    """Run in a child: own/text.onnx with random weights, and its tokenizer."""
    from tightrope.onnx.export import export_onnx

    work, data = folder / "work", folder / "work/data/data.json"
    sizes = {"train": 200, "evaluation": 20}
    columns = {"text": "text", "label": "label"}
    reviews = f"files:{folder}/data/reviews_*.csv"
    prepare_splits(data, source=reviews, columns=columns, splits=sizes, pool=20, seed=0)
    checkpoint = make_checkpoint(work, SOURCE, split_of(data, "train"))
    (folder / "own").mkdir()
    export_onnx(checkpoint, folder / "own/text.onnx", threads=1)
    shutil.copy2(checkpoint.parent / "tokenizer.json", folder / "own")


@pytest.fixture
def mine(unrun: Project) -> Project:
    """A project with the configuration of the page and the files that it names."""
    write_texts(unrun / "data/reviews_all.csv", seed=0, count=3000)
    supervised(write_own, unrun.folder, limits=LIMITS)
    (unrun / "config/mine.yaml").write_text(CONFIGURATION)
    return unrun


def told(project: Project, words: list[str], *more: str) -> str:
    """What a command of the page prints; it must go well."""
    program, *arguments = [*words, *more]
    if program != "snakemake":
        return printed_in(project.folder, *arguments)
    done = project.snakemake(*arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_page_goes_from_an_onnx_file_to_a_quantized_one_with_a_cache_of_tensorrt(mine) -> None:
    ((whole),) = commands("on the machine with the GPU")
    planned = told(mine, whole, "--dry-run", "--verbose")
    assert "cuda-tensorrt-int8-fp16-entropy-512/engine.json" in planned
    assert "quantized/s8s8-entropy-512.onnx" in planned
    assert "cuda-onnxruntime-fp32" in planned
    settings = yaml.safe_load(CONFIGURATION) | {"repairs": {"mha": {"attention": True}}}
    (mine / "config/long.yaml").write_text(yaml.safe_dump(settings))
    planned = told(mine, [*whole[:-1], "config/long.yaml"], "--dry-run", "--verbose")
    assert "cuda-tensorrt-int8-fp16-entropy-512-mha/engine.json" in planned

    calibrate, bring_in, again = commands("from a cache of TensorRT")
    told(mine, calibrate)
    own = mine.read(CACHE)
    tool = bring_in[:2]
    told(mine, [*tool, "export", CACHE, "old.cache", "--tensorrt", "8601"])
    text = (mine / "old.cache").read_text()
    assert text.startswith("TRT-8601-EntropyCalibration2\n")
    (mine / "old.cache").write_text(f"{text}fused_away: 3c010a14\n")
    assert "tensors left out: 1" in told(mine, bring_in)
    imported = mine.read(CACHE)
    assert imported["imported"] == "TRT-8601-EntropyCalibration2"
    assert imported["ranges"].keys() == own["ranges"].keys()
    for name, (low, high) in imported["ranges"].items():
        assert high == -low == pytest.approx(max(map(abs, own["ranges"][name])), rel=1e-6)

    planned = told(mine, again, "--dry-run", "--verbose")
    assert "rule calibrate" not in planned
    assert "rule quantize_onnx" in planned
    told(mine, again, "--until", "quantize_onnx")
    assert mine.read(CACHE) == imported
    quantized = load_onnx(mine / "artifacts/mine/quantized/s8s8-entropy-512.onnx")
    assert "QuantizeLinear" in {node.op_type for node in quantized.graph.node}

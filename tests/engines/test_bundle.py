"""A bundle answers and proves itself without this project."""

import json
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from artifact_files import flip, written
from bundles import MODEL, bundled, change, folder_of, make_bundle, measured, unpack
from page_blocks import blocks
from programs import run_in
from splits import prepare_splits
from tightrope.artifacts.files import read_json
from tightrope.errors import TightropeError
from tightrope.inputs.encode import read_split
from tightrope.variants import Variant
from tiny_images import SIDE
from tiny_model import TinyModel, name_variant

Build = Callable[[Variant], Path]
MadeOnce = Callable[[str, Callable[[Path], object]], Path]
# one without buckets, one with, and PyTorch's int8-dynamic, which quantizes by the range of a whole
# batch. test_using_an_engine.py runs the programs of all engines.
TEXTS = (("onnxruntime", "fp32"), ("openvino", "int8"), ("pytorch", "int8-dynamic"))
TEXT_SHAPES = [{"batch": 4, "sequence": 32}]
IMAGE_SHAPES = [{"batch": 1, "height": SIDE, "width": SIDE}]
QUICK = name_variant("onnxruntime", "fp32")
WIDE = ["avx2048", "amx_int1"]


@pytest.fixture
def text_bundle(tiny: TinyModel, built: Build, made_once: MadeOnce) -> Build:
    """From a variant to its unpacked bundle, each made once; not to be changed."""

    def unpacked(variant: Variant) -> Path:
        def make(folder: Path) -> None:
            make_bundle(tiny, built(variant), folder, variant, shapes=TEXT_SHAPES)

        return folder_of(made_once(f"bundle-{variant}", make))

    return unpacked


@pytest.fixture
def copy(text_bundle: Build, tmp_path: Path) -> Path:
    """A bundle to be changed."""
    return Path(shutil.copytree(text_bundle(QUICK), tmp_path / "copy"))


def verify(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_in(folder, "verify.py", *words)


def on_record(folder: Path) -> list[str]:
    """The label of each example that the accuracy record says."""
    labels = read_json(folder / "bundle.json")["labels"]
    return [labels[one] for one in read_json(folder / "record/accuracy.json")["predictions"]]


def texts_of(model: TinyModel) -> list[str]:
    return [example["text"] for example in read_split(model.split("evaluation"))]


def refusal(folder: Path) -> str:
    """The one line with which the bundle is refused."""
    done = verify(folder)
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(("engine", "precision"), TEXTS)
def test_a_bundle_of_texts_gives_the_predictions_on_record(engine, precision, tiny, text_bundle):
    folder = text_bundle(name_variant(engine, precision))
    words = ["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"]
    assert subprocess.run(words, cwd=folder, check=False).returncode == 0
    done = verify(folder)
    assert done.returncode == 0, done.stderr
    labels = on_record(folder)
    assert f"{len(labels)} of {len(labels)} as on record" in done.stdout
    assert "32\N{NO-BREAK SPACE}tokens: " in done.stdout
    readme = (folder / "README.md").read_text()
    assert ("PyTorch's default build" in readme) is (engine == "pytorch")
    said = run_in(folder, "predict.py", *texts_of(tiny)[:6])
    assert said.returncode == 0, said.stderr
    assert [line.split("\t")[0] for line in said.stdout.splitlines()] == labels[:6]
    assert all(0.3 < float(line.split("\t")[1]) <= 1 for line in said.stdout.splitlines())


def test_a_bundle_of_images_gives_the_predictions_on_record(tiny_images, built_images, tmp_path):
    variant = QUICK
    path = built_images(variant)
    facts = {"shapes": IMAGE_SHAPES, "request": "images"}
    make_bundle(tiny_images, path, tmp_path / "made", variant, **facts)
    folder = folder_of(tmp_path / "made")
    done = verify(folder)
    assert done.returncode == 0, done.stderr
    assert "answers    32 of 32 as on record" in done.stdout
    images = sorted(path.name for path in (folder / "sample").glob("*.png"))
    (tmp_path / "list.txt").write_text("".join(f"sample/{name}\n" for name in images[:3]))
    said = run_in(folder, "predict.py", "--file", str(tmp_path / "list.txt"))
    assert [line.split("\t")[0] for line in said.stdout.splitlines()] == on_record(folder)[:3]


def test_the_service_of_the_page_gives_the_answers_on_record_to_any_thread(tiny, text_bundle):
    folder = text_bundle(name_variant("openvino", "int8"))
    (code,) = blocks("bundle.md", "python")
    assert len(code.splitlines()) <= 20
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-c", code.replace("8080", str(port))]
    texts = texts_of(tiny)
    chunks = [texts[at : at + 16] for at in range(0, len(texts), 16)]
    few = [texts[:1], [], *([one] for one in texts[:24]), texts[0]]
    with subprocess.Popen(words, cwd=folder, stderr=subprocess.DEVNULL) as service:
        try:
            assert asked(port, few[0])[0] == 200
            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(partial(asked, port), [*chunks, *few]))
            assert service.poll() is None
            refused = [asked(port, wrong) for wrong in (7, [7], None)]
        finally:
            service.terminate()
    found = [one for status, chunk in answers for one in chunk]
    labels = on_record(folder)
    assert [one["label"] for one in found] == [*labels, labels[0], *labels[:24], labels[0]]
    assert all(1 / 3 <= one["score"] <= 1 for one in found)
    assert {status for status, _ in answers} == {200}
    assert all(status == 400 and answer["error"] for status, answer in refused)


def asked(port: int, body: Any) -> tuple[int, Any]:
    """Status and answer of a request of that body, from when the service listens on."""
    for _ in range(300):
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        with suppress(ConnectionRefusedError), closing(connection):
            connection.request("POST", "/", json.dumps(body))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        time.sleep(0.1)
    raise TimeoutError("the service does not listen")


def test_changed_bytes_and_missing_files_are_named_before_anything_is_loaded(copy: Path) -> None:
    flip(copy / "engine/model.onnx", 20_000)
    (copy / "bundled/engine.py").write_text("raise SystemExit('loaded')")
    line = refusal(copy)
    assert "engine/model.onnx has other bytes" in line
    assert "bundled/engine.py has other bytes" in line
    (copy / "tokenizer.json").unlink()
    assert "tokenizer.json: No such file" in refusal(copy)


def test_another_processor_is_refused_in_a_line(copy: Path) -> None:
    change(copy, "bundle.json", lambda facts: {**facts, "machine": "sparc"})
    assert "made for sparc, this is " in refusal(copy)
    here = platform.machine()
    change(copy, "bundle.json", lambda facts: {**facts, "machine": here, "requires": WIDE})
    assert "compiled for avx2048, amx_int1, which this processor" in refusal(copy)
    (copy / "bundled/engine.py").write_text("def load(*_): raise SystemExit('loaded')")
    done = run_in(copy, "predict.py", "a text")
    assert done.returncode == 2
    assert "compiled for avx2048, amx_int1, which this processor" in done.stderr.splitlines()[-1]
    # as a wrong command line is, in a line
    for words in ((), ("--file", "missing.txt")):
        done = run_in(copy, "predict.py", *words)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_other_predictions_are_refused_and_an_empty_text_is_an_example(copy: Path) -> None:
    def turned(sample: list[dict[str, int]]) -> list[dict[str, int]]:
        first = {**sample[0], "prediction": (sample[0]["prediction"] + 1) % 3, "margin": 2.0}
        return [first, *sample[1:]]

    change(copy, "sample/sample.json", turned)
    assert "1 of 80 answers changed, such as example 0: " in refusal(copy)
    done = run_in(copy, "-c", "from predict import load; print(load()([''])[0]['label'])")
    label = json.loads((copy / "bundle.json").read_text())["labels"].index(done.stdout.strip())
    empty = {"index": 0, "label": label, "margin": 1.0, "prediction": label, "text": ""}
    change(copy, "sample/sample.json", lambda sample: [empty])
    done = verify(copy)
    assert done.returncode == 0, done.stderr
    assert "answers    1 of 1 as on record, 1 right" in done.stdout


def test_another_latency_is_explained(copy: Path) -> None:
    def quicker(facts: dict[str, object]) -> dict[str, object]:
        (first, *_) = facts["latency"]  # type: ignore[misc]
        return {
            **facts,
            "latency": [{**first, "low_s": 1e-9, "high_s": 2e-9}],
            "host": {**facts["host"], "cpu": "A Quicker One", "isa": ["avx2048"]},  # type: ignore[dict-item]
            "workload_s": 1e-9,
        }

    change(copy, "bundle.json", quicker)
    requirements, sums = copy / "requirements.txt", copy / "SHA256SUMS"
    lines = [line for line in sums.read_text().splitlines() if "requirements.txt" not in line]
    sums.write_text("\n".join(lines))
    requirements.write_text("numpy==0.1\n")
    done = verify(copy)
    assert done.returncode == 0
    assert "slower than the 1e-06 to 2e-06 ms" in done.stdout
    (why,) = (line for line in done.stdout.splitlines() if line.startswith("why "))
    for cause in ("another CPU: ", "another ISA: without avx2048", "times as long for a fixed"):
        assert cause in why
    assert "measured with 0.1" in done.stdout
    change(copy, "bundle.json", lambda facts: {**facts, "workload_s": 1e9})
    done = verify(copy, "--latency")
    assert done.returncode == 2
    assert "this machine takes 0.00 times as long for a fixed" in done.stdout
    requirements.write_text("no-such-distribution==1\n")
    assert "no-such-distribution is missing: pip install -r requirements.txt" in refusal(copy)


def test_without_labels_it_proves_files_and_latency(tiny, built: Build, tmp_path) -> None:
    data = tmp_path / "data/data.json"
    splits = {"train": 0, "evaluation": 8}
    prepare_splits(data, source="random", columns={}, splits=splits, pool=8, seed=0)
    model = tiny._replace(data=data)
    make_bundle(model, built(QUICK), tmp_path / "made", QUICK, shapes=TEXT_SHAPES)
    folder = folder_of(tmp_path / "made")
    done = verify(folder)
    assert done.returncode == 0, done.stderr
    assert "answers    none on record: the data has no labels" in done.stdout
    assert "latency " in done.stdout
    assert "Not known: the data has no labels." in (folder / "README.md").read_text()


def test_a_bundle_takes_a_result_and_always_has_the_same_bytes(tiny, built, tmp_path) -> None:
    paths = measured(tiny, built(QUICK), tmp_path / "one", QUICK, TEXT_SHAPES)
    first, second = (bundled(paths, tmp_path / f"{name}.tar.gz", "onnxruntime") for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    for name, change_of, reason in (
        ("summary", renamed, f"has no {MODEL}/{QUICK}; run snakemake first"),
        ("latency", of_another, "measured with another engine"),
    ):
        other = tmp_path / f"other.{name}.json"
        written(other, change_of(read_json(getattr(paths, name))))
        with pytest.raises(TightropeError, match=reason):
            bundled(replace(paths, **{name: other}), tmp_path / "bundle.tar.gz", "onnxruntime")
    assert not (tmp_path / "bundle.tar.gz").exists()
    # its card says what is provisional, why not another engine, and no program of the host
    written(tmp_path / "other.summary.json", decided(read_json(paths.summary)))
    paths = replace(paths, summary=tmp_path / "other.summary.json")
    folder = unpack(bundled(paths, tmp_path / "bundle.tar.gz", "onnxruntime"), tmp_path)
    readme = (folder / "README.md").read_text()
    assert (
        "(provisional: other load disturbed what it rests on): `other`, the only variant that keeps"
        in readme
    )
    assert "| `cpu-openvino-fp32` | disturbed: only 2 of 12 pairs of blocks |" in readme
    assert "`cpu-tvm-fp32`" not in readme and "chrome" not in readme


def decided(summary: Any) -> Any:
    """A decision for another engine while a program of the host was busy."""
    busy = {"why": "only 2 of 12 pairs of blocks; the busiest: chrome (90 % of a core)"}
    reasons = {
        "cpu-openvino-fp32": {"code": "disturbed", "values": busy},
        "cpu-tvm-fp32": {"code": "unavailable", "values": {"reason": "not installed"}},
    }
    rejected = [{"variant": name, "reason": reason} for name, reason in reasons.items()]
    (one,) = summary["recommendations"]
    why = {"code": "only", "values": {"judged": True}}
    changes = {"variant": "other", "why": why, "provisional": True, "rejected": rejected}
    return {**summary, "recommendations": [{**one, **changes}]}


def renamed(summary: Any) -> Any:
    """That of another variant alone."""
    others = [{**one, "variant": "cpu-openvino-fp32"} for one in summary["results"]]
    return {**summary, "results": others}


def of_another(record: Any) -> Any:
    """The same times of another engine."""
    return {**record, "engine_sha256": "0" * 64}

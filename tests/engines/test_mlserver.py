"""MLServer serves a bundle: the answers on record over HTTP and gRPC."""

import base64
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from bundles import run_in
from served_bundle import (
    NONE,
    QUICK,
    SERVERS,
    MadeOnce,
    Server,
    environment,
    request_of,
    served_folder,
    serving,
)
from tightrope.bundle.mlserver import DISTRIBUTION, VERSION
from tightrope.inputs.encode import read_split
from tightrope.variants import Variant
from tiny_images import SIDE
from tiny_model import TinyModel, name_variant, skip_where_emulated

pytestmark = pytest.mark.skipif(not SERVERS.is_dir(), reason=NONE)
Build = Callable[[Variant], Path]
TEXTS = (
    ("onnxruntime", "int8"),
    ("openvino", "fp32"),
    ("openvino", "int8"),
    ("pytorch", "fp32"),
)
IMAGE_SHAPES = [{"batch": 1, "height": SIDE, "width": SIDE}]
OVER_GRPC = """
import json, sys
import grpc
from mlserver.grpc import dataplane_pb2, dataplane_pb2_grpc

stub = dataplane_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(sys.argv[1]))

def ask(texts):
    request = dataplane_pb2.ModelInferRequest(model_name=sys.argv[2])
    tensor = request.inputs.add(name="text", datatype="BYTES", shape=[len(texts)])
    tensor.contents.bytes_contents.extend(texts)
    return stub.ModelInfer(request).outputs[0].contents.bytes_contents

print(json.dumps([one.decode() for one in ask([text.encode() for text in sys.argv[3:]])]))
try:
    ask([bytes([255])])
except grpc.RpcError as error:
    print(error.code().name, error.details())
"""


@pytest.fixture(scope="module")
def quick(tiny: TinyModel, built: Build, made_once: MadeOnce) -> Path:
    return served_folder(made_once, tiny, built(QUICK), QUICK)


@pytest.fixture(scope="module")
def server(quick: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It serves `quick` for all tests of this file."""
    with serving(quick, tmp_path_factory.mktemp("server") / "log") as running:
        yield running


@pytest.fixture(scope="module")
def texts(tiny: TinyModel) -> list[str]:
    return [one["text"] for one in read_split(tiny.split("evaluation"))]


def on_record(folder: Path) -> list[str]:
    """The labels that were predicted for the evaluation split when it was measured."""
    labels = json.loads((folder / "bundle.json").read_text())["labels"]
    record = json.loads((folder / "record/accuracy.json").read_text())
    return [labels[one] for one in record["predictions"]]


def by_requests_of(
    size: int, running: Server, model: str, name: str, elements: list[str]
) -> list[str]:
    """The labels of all elements, so many in each request."""
    chunks = [elements[at : at + size] for at in range(0, len(elements), size)]
    return [label for chunk in chunks for label in running.infer(model, name, chunk)]


@pytest.mark.parametrize(("engine", "precision"), TEXTS)
def test_the_answers_over_http_are_those_on_record(
    engine: str,
    precision: str,
    tiny: TinyModel,
    built: Build,
    made_once: MadeOnce,
    texts: list[str],
    tmp_path: Path,
) -> None:
    variant = name_variant(engine, precision)
    skip_where_emulated(variant, json.loads(built(variant).read_text()))
    folder = served_folder(made_once, tiny, built(variant), variant)
    with serving(folder, tmp_path / "log") as running:
        for size in (1, 16):
            labels = by_requests_of(size, running, folder.name, "text", texts)
            assert labels == on_record(folder)


def test_images_in_base64_get_the_answers_on_record_and_what_is_none_is_named(
    tiny_images: TinyModel, built_images: Build, made_once: MadeOnce, tmp_path: Path
) -> None:
    facts = {"shapes": IMAGE_SHAPES, "request": "images"}
    folder = served_folder(made_once, tiny_images, built_images(QUICK), QUICK, **facts)
    files = [one["image"] for one in read_split(tiny_images.split("evaluation"))]
    images = [base64.b64encode(one).decode() for one in files]
    cut = base64.b64encode(files[0][: len(files[0]) // 2]).decode()
    with serving(folder, tmp_path / "log") as running:
        assert by_requests_of(16, running, folder.name, "image", images) == on_record(folder)
        path = f"/v2/models/{folder.name}/infer"
        for broken in (cut, "AAAA", "no base64", "", "ü"):
            status, answer = running.ask(path, request_of("image", [images[0], broken]))
            assert status == 400
            assert re.fullmatch(
                r"(element 1 cannot be read|data cannot be decoded): .+", answer["error"]
            )
        assert running.infer(folder.name, "image", images[:1]) == on_record(folder)[:1]
        assert "Traceback" not in running.log.read_text()


def test_the_answers_over_http_are_those_of_predict(
    server: Server, quick: Path, texts: list[str]
) -> None:
    assert by_requests_of(16, server, quick.name, "text", texts) == on_record(quick)
    program = "import json, sys; from predict import load; print(json.dumps(load()(sys.argv[1:])))"
    here = json.loads(run_in(quick, "-c", program, *texts[:3]).stdout)
    _, answer = server.ask(f"/v2/models/{quick.name}/infer", request_of("text", texts[:3]))
    outputs = {one["name"]: one["data"] for one in answer["outputs"]}
    assert outputs["label"] == [one["label"] for one in here]
    assert outputs["score"] == pytest.approx([one["score"] for one in here], rel=1e-5)


def test_concurrent_requests_get_their_own_answers(
    server: Server, quick: Path, texts: list[str]
) -> None:
    """Among them are some that state another shape than their data has."""
    wrong = request_of("text", texts[:1], shape=[2])
    path = f"/v2/models/{quick.name}/infer"

    def ask(index: int) -> list[str]:
        assert server.ask(path, wrong)[0] == 400
        return server.infer(quick.name, "text", texts[index : index + 2])

    expected, starts = on_record(quick), [*range(len(texts) - 1)] * 2
    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(ask, starts))
    assert answers == [expected[index : index + 2] for index in starts]


def test_the_server_answers_while_the_engine_computes(
    server: Server, quick: Path, texts: list[str]
) -> None:
    with ThreadPoolExecutor(1) as clients:
        long = clients.submit(server.infer, quick.name, "text", texts * 100)
        meanwhile = 0
        while not long.done():
            assert server.ask("/v2/health/live")[0] == 200
            meanwhile += 1
        assert long.result() == on_record(quick) * 100
    assert meanwhile > 5


def test_the_answers_over_grpc_are_the_same(
    server: Server, quick: Path, texts: list[str], tmp_path: Path
) -> None:
    (tmp_path / "client.py").write_text(OVER_GRPC)
    words = [f"127.0.0.1:{server.grpc}", quick.name, *texts[:4]]
    done = subprocess.run(
        [sys.executable, tmp_path / "client.py", *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    labels, refusal = done.stdout.splitlines()
    assert json.loads(labels) == on_record(quick)[:4]
    assert refusal.startswith("INVALID_ARGUMENT data cannot be decoded")


def test_the_line_of_the_readme_asks_the_server(server: Server, quick: Path) -> None:
    if not shutil.which("curl"):
        pytest.skip("no curl on this machine")
    readme = (quick / "README.md").read_text()
    line = re.findall(r"^    (curl .+?)\n\n", readme, re.DOTALL | re.MULTILINE)[0]
    line = line.replace("localhost:8080", f"127.0.0.1:{server.http}")
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert [one["name"] for one in json.loads(done.stdout)["outputs"]] == ["label", "score"]
    assert "mlserver start ." in readme


def test_two_folders_of_one_repository_keep_their_own_engines(
    quick: Path, texts: list[str], tmp_path: Path
) -> None:
    """Their modules have the same names; the labels of one are changed to tell them apart."""
    other = tmp_path / "models" / "other"
    for folder in (other, other.with_name(quick.name)):
        shutil.copytree(quick, folder)
    shutil.copy(quick / "settings.json", other.parent)
    for name, renamed in (("bundle.json", "labels"), ("model-settings.json", "name")):
        document = json.loads((other / name).read_text())
        labels = [f"other {one}" for one in document.get("labels", [])]
        document[renamed] = labels or "other"
        (other / name).write_text(json.dumps(document))
    with serving(other.parent, tmp_path / "log") as running:
        for _ in range(2):
            assert running.infer(quick.name, "text", texts) == on_record(quick)
            assert running.infer("other", "text", texts) == on_record(other)
            for step in ("unload", "load"):
                assert running.ask(f"/v2/repository/models/other/{step}", b"")[0] == 200


def test_a_missing_runtime_is_named_with_its_remedy(quick: Path, tmp_path: Path) -> None:
    folder = tmp_path / quick.name
    shutil.copytree(quick, folder)
    engine = folder / "bundled/engine.py"
    engine.write_text(engine.read_text().replace("import onnxruntime", "import not_installed"))
    with pytest.raises(RuntimeError) as raised, serving(folder, tmp_path / "log"):
        pass
    requirements = folder / "requirements.txt"
    assert f"not_installed is missing: pip install -r {requirements}" in str(raised.value)


def test_the_bundle_proves_itself_and_says_that_mlserver_is_missing(quick: Path) -> None:
    done = run_in(quick, "verify.py")
    remedy = f"refused    {DISTRIBUTION} is missing: pip install -r requirements.txt\n"
    assert (done.returncode, done.stderr) == (1, remedy)
    done = subprocess.run(
        [sys.executable, "verify.py"], cwd=quick, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_what_is_imported_is_pinned(quick: Path, repository: Path) -> None:
    lines = (quick / "requirements.txt").read_text().splitlines()
    names = [line.partition("==")[0] for line in lines]
    assert names == ["mlserver", "numpy", "onnxruntime", "tokenizers"]
    tested = f"{DISTRIBUTION}=={VERSION}"
    assert tested in lines
    assert tested in (repository / "envs/test-servers.in").read_text().splitlines()


def test_ports_are_left_to_the_environment(quick: Path) -> None:
    settings = json.loads((quick / "settings.json").read_text())
    assert settings == {"debug": False, "parallel_workers": 0}

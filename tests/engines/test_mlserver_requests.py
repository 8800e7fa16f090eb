"""MLServer refuses a bad request for a bundle in one line."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served_bundle import (
    NONE,
    QUICK,
    SERVERS,
    MadeOnce,
    Server,
    request_of,
    served_folder,
    serving,
)
from tightrope.variants import Variant
from tiny_model import TinyModel

pytestmark = pytest.mark.skipif(not SERVERS.is_dir(), reason=NONE)
Build = Callable[[Variant], Path]
# a request and what is said of it, under status 400
REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"inputs": []}, "one input 'text' is expected, not []"),
    (request_of("words", ["a"]), "one input 'text' is expected, not ['words']"),
    (
        {"inputs": request_of("text", ["a"])["inputs"] * 2},
        "one input 'text' is expected, not ['text', 'text']",
    ),
    (request_of("text", [1.0], datatype="FP32"), "datatype BYTES is expected, not FP32"),
    (request_of("text", []), "data is empty"),
    (request_of("text", ["a"], shape=[2]), "data has 1 elements, which is not shape [2]"),
    (
        request_of("text", ["a", "b"], shape=[1, 2]),
        "data has 2 elements, which is not shape [1, 2]",
    ),
    (request_of("text", [1]), "data is expected to be a list of strings"),
    (request_of("text", [None]), "data is expected to be a list of strings"),
    (request_of("text", [["a"]]), "data is expected to be a list of strings"),
    (request_of("text", ["a"], data="a"), "data is expected to be a list of strings"),
    (
        request_of("text", ["a"], parameters={"content_type": "base64"}),
        "content_type 'str' is expected, not 'base64'",
    ),
    (
        {**request_of("text", ["a"]), "outputs": [{"name": "logits"}]},
        "outputs are ['label', 'score'], not ['logits']",
    ),
)
# MLServer itself refuses these
MALFORMED = (b"{", b"[]", b"{}", b'{"inputs": 1}', b'{"inputs": [{"name": "text"}]}')


@pytest.fixture(scope="module")
def quick(tiny: TinyModel, built: Build, made_once: MadeOnce) -> Path:
    return served_folder(made_once, tiny, built(QUICK), QUICK)


@pytest.fixture(scope="module")
def server(quick: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It serves `quick` for all tests of this file."""
    with serving(quick, tmp_path_factory.mktemp("server") / "log") as running:
        yield running


@pytest.mark.parametrize(("request_", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_a_bad_request_is_refused_in_a_line(
    server: Server, quick: Path, request_: dict[str, Any], said: str
) -> None:
    assert server.ask(f"/v2/models/{quick.name}/infer", request_) == (400, {"error": said})


def test_malformed_requests_leave_no_traceback(server: Server, quick: Path) -> None:
    for body in MALFORMED:
        assert server.ask(f"/v2/models/{quick.name}/infer", body)[0] == 422
    assert "Traceback" not in server.log.read_text()


def test_a_request_gets_only_the_outputs_that_it_names(server: Server, quick: Path) -> None:
    body = {**request_of("text", ["a"]), "outputs": [{"name": "score"}]}
    _, answer = server.ask(f"/v2/models/{quick.name}/infer", body)
    assert [(one["name"], one["shape"]) for one in answer["outputs"]] == [("score", [1, 1])]

"""Netron's viewer for one graph: what is served, to whom, and what is said where it cannot be."""

import http.client
import importlib.util
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from programs import run_in
from tightrope.errors import TightropeError
from tightrope.report.graphs.netron import graph_file, open_server, viewer_page

ROOT = Path(__file__).parents[4]
needs_netron = pytest.mark.skipif(
    importlib.util.find_spec("netron") is None, reason="netron is not installed"
)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("netron") / "reports/mine-docs/graphs"
    folder.mkdir(parents=True)
    (folder / "simplified.onnx").write_bytes(onnx.ModelProto(ir_version=10).SerializeToString())
    return folder.parents[1]


@pytest.fixture(scope="module")
def address(reports: Path) -> Iterator[str]:
    server = open_server(graph_file("mine-docs", "simplified", reports=reports), port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def answered(address: str, path: str = "/", host: str | None = None) -> tuple[int, Any]:
    """Status and headers of the answer to a request as it is, without tidying its path."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    connection.putrequest("GET", path, skip_host=host is not None)
    if host is not None:
        connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers


@needs_netron
def test_only_this_machines_own_names_are_answered(address: str) -> None:
    for host in ("localhost:9000", "127.0.0.1", "[::1]:80"):
        assert answered(address, host=host)[0] == 200
    for host in ("evil.example", "localhost.evil.example", "evil.example:80", "", "127.0.0.1.a"):
        for path in ("/", "/data/simplified.onnx", "/index.js"):
            assert answered(address, path, host)[0] == 421


@needs_netron
def test_no_code_of_the_package_no_listing_and_no_other_file_is_served(address):
    listings = ("/server.py", "/__init__.py", "/__pycache__/", "/__pycache__")
    for path in (*listings, "/data/other.onnx", "/../reports", "/data/../../envs/cpu.txt"):
        assert answered(address, path)[0] == 404, path
    assert answered(address, "/./__pycache__/..")[0] == 200


@needs_netron
def test_the_page_opens_the_graph_in_no_frame_and_asks_only_this_server(address, reports) -> None:
    for path in ("", "/", "/index.html", "/./", "/./index.html", "//", "/a/../index.html"):
        with urllib.request.urlopen(f"{address}{path}") as answer:
            page, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
            assert '<meta name="file" content="/data/simplified.onnx">' in page
            assert 'name="date"' not in page  # it refuses to work half a year after it
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "frame-ancestors 'none'" in policy
            assert "connect-src 'self'" in policy and "http" not in policy
    status, headers = answered(address, "/index.js")
    assert (status, headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    with urllib.request.urlopen(f"{address}/data/simplified.onnx") as answer:
        assert answer.read() == (reports / "mine-docs/graphs/simplified.onnx").read_bytes()
    # a port that is taken is named
    port = int(address.rpartition(":")[2])
    with pytest.raises(TightropeError, match=f"port {port}: .*PORT="):
        open_server(graph_file("mine-docs", "simplified", reports=reports), port=port)


def test_an_unknown_version_of_the_page_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<html></html>")
    with pytest.raises(TightropeError, match="unknown version"):
        viewer_page(tmp_path, "a.onnx")


def test_a_graph_that_is_not_there_is_said(reports: Path, tmp_path: Path) -> None:
    for folder, *words, said in (
        (reports, "", "simplified", "no model was named: make netron MODEL=name; models with gr"),
        (
            reports,
            "mine-dics",
            "simplified",
            "mine-dics: no such model; models with graphs here: m",
        ),
        (reports, "mine-docs", "u8s8-minmax-8", "snakemake --cores 1 .*/mine-docs/graphs/u8s8-m"),
        (tmp_path, "", "simplified", "no graph was drawn yet"),
        (tmp_path, "mine", "simplified", "not created yet; create it with snakemake"),
    ):
        with pytest.raises(TightropeError, match=said):
            graph_file(*words, reports=folder)


def test_what_cannot_be_served_is_said_in_one_line(reports: Path) -> None:
    words = ("mine-docs", "simplified", "\N{SUPERSCRIPT TWO}")
    tool, scripts = ROOT / "tools/serve_graph.py", str(ROOT / "scripts")
    done = run_in(reports.parent, tool, *words, PYTHONPATH=scripts)
    assert done.returncode == 1 and "PORT=\N{SUPERSCRIPT TWO}: no number" in done.stderr
    assert done.stderr.count("\n") == 1 and not done.stdout

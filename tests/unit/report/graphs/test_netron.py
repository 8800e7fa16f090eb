"""Netron's viewer for one graph: what is served, to whom, and what is said where it cannot be."""

import http.client
import importlib.util
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from tightrope.errors import TightropeError
from tightrope.report.graphs.netron import graph_file, open_server, viewer_page

ROOT = Path(__file__).parents[4]
needs_netron = pytest.mark.skipif(
    importlib.util.find_spec("netron") is None, reason="netron is not installed"
)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    folder = tmp_path / "reports/mine-docs/graphs"
    folder.mkdir(parents=True)
    (folder / "simplified.onnx").write_bytes(onnx.ModelProto(ir_version=10).SerializeToString())
    return tmp_path / "reports"


@pytest.fixture
def address(reports: Path) -> Iterator[str]:
    server = open_server(graph_file("mine-docs", "simplified", reports=reports), port=0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@needs_netron
def test_the_page_opens_the_graph_and_may_ask_nothing_but_this_server(address, reports):
    with urllib.request.urlopen(address) as answer:
        page, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
    assert '<meta name="file" content="/data/simplified.onnx">' in page
    assert 'name="date"' not in page  # it refuses to work half a year after it
    assert "connect-src 'self'" in policy and "http" not in policy
    with urllib.request.urlopen(f"{address}/data/simplified.onnx") as answer:
        assert answer.read() == (reports / "mine-docs/graphs/simplified.onnx").read_bytes()


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
@pytest.mark.parametrize(
    "path",
    [
        *("/server.py", "/__init__.py", "/__pycache__/", "/__pycache__", "/./__pycache__/.."),
        *("/data/other.onnx", "/../reports", "/data/../../envs/cpu.txt"),
    ],
)
def test_no_code_of_the_package_no_listing_and_no_other_file_is_served(address, path):
    status, _ = answered(address, path)
    assert status == (200 if path.endswith("..") else 404)


@needs_netron
def test_the_page_is_the_same_under_any_name_and_is_shown_in_no_frame(address: str) -> None:
    for path in ("/", "/index.html", "/./", "/./index.html", "//", "/a/../index.html"):
        with urllib.request.urlopen(f"{address}{path}") as answer:
            assert 'name="date"' not in answer.read().decode()
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    status, headers = answered(address, "/index.js")
    assert (status, headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")


@needs_netron
def test_a_port_that_is_taken_is_named(address: str, reports: Path) -> None:
    port = int(address.rpartition(":")[2])
    with pytest.raises(TightropeError, match=f"port {port}: .*PORT="):
        open_server(graph_file("mine-docs", "simplified", reports=reports), port=port)


def test_an_unknown_version_of_the_page_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<html></html>")
    with pytest.raises(TightropeError, match="unknown version"):
        viewer_page(tmp_path, "a.onnx")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("", "simplified"), "no model was named: make netron MODEL=name; models with graphs here"),
        (("mine-dics", "simplified"), "mine-dics: no such model; models with graphs here: mine-d"),
        (("mine-docs", "u8s8-minmax-8"), "snakemake --cores 1 .*/mine-docs/graphs/u8s8-minmax"),
    ],
)
def test_a_graph_that_is_not_there_is_said(reports: Path, words: Any, said: str) -> None:
    with pytest.raises(TightropeError, match=said):
        graph_file(*words, reports=reports)


def test_what_cannot_be_served_is_said_in_one_line(reports: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "tools/serve_graph.py",
            "mine-docs",
            "simplified",
            "\N{SUPERSCRIPT TWO}",
        ],
        cwd=reports.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "PORT=\N{SUPERSCRIPT TWO}: no number" in done.stderr
    assert done.stderr.count("\n") == 1 and not done.stdout


def test_before_any_run_that_is_what_is_said(tmp_path: Path) -> None:
    with pytest.raises(TightropeError, match="no graph was drawn yet"):
        graph_file("", "simplified", reports=tmp_path)
    with pytest.raises(TightropeError, match="not created yet; create it with snakemake"):
        graph_file("mine", "simplified", reports=tmp_path)

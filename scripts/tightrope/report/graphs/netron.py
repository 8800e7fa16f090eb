"""Serve Netron's viewer for one graph, to this machine's own browser only."""

import html
import importlib.util
import posixpath
import re
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from tightrope.errors import TightropeError, nearest

HOST = "127.0.0.1"
REPORTS = Path("reports")
# block the page's requests that would identify the user and report usage
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "worker-src 'self' blob:; connect-src 'self' data: blob:; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Set-Cookie": "consent=none; SameSite=Strict",
}
# with any port: a tunnel may have another one
HOSTS = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?")
# the kinds of files that the viewer consists of
PARTS = {
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".css": "text/css; charset=utf-8",
    ".ico": "image/x-icon",
    ".png": "image/png",
}


def graph_file(model: str, graph: str, *, reports: Path = REPORTS) -> Path:
    """Return the ONNX file for Netron of a model's graph.

    Raises TightropeError with the available graphs, or the command that creates the file.
    """
    drawn = sorted(
        path.parent.name for path in reports.glob("*/graphs") if any(path.glob("*.onnx"))
    )
    available = (
        f"models with graphs here: {', '.join(drawn)}" if drawn else "no graph was drawn yet"
    )
    if not model:
        raise TightropeError(f"no model was named: make netron MODEL=name; {available}")
    path = reports / model / "graphs" / f"{graph}.onnx"
    if path.is_file():
        return path
    if not (reports / model).is_dir() and drawn:
        raise TightropeError(f"{model}: no such model; {available}{nearest(model, drawn)}")
    existing = ", ".join(sorted(file.stem for file in path.parent.glob("*.onnx")))
    hint = f"; there is {existing} of it" if existing else ""
    raise TightropeError(
        f"{path}: not created yet{hint}; create it with snakemake --cores 1 {path} (and the "
        "--configfile of your run)"
    )


def viewer_folder() -> Path:
    """Return the folder of netron's web page; raise TightropeError if netron is not installed."""
    spec = importlib.util.find_spec("netron")
    if spec is None or spec.origin is None:
        raise TightropeError("netron is not installed; make netron installs it into .venv")
    return Path(spec.origin).parent


def viewer_page(folder: Path, name: str) -> bytes:
    """Return the page, set up to open the file `name` from this server.

    It omits Netron's release date: half a year after that date the page would refuse to work.
    """
    page = (folder / "index.html").read_text(encoding="utf-8")
    version = re.search(r'<meta name="version" content="([^"]*)">', page)
    if version is None:
        raise TightropeError(
            f"{folder}: an unknown version of netron; install that of envs/cpu.txt"
        )
    fields = {
        "type": "Python",
        "version": version[1],
        "file": f"/data/{quote(name)}",
        "name": name,
        "identifier": name,
    }
    metas = "".join(
        f'<meta name="{key}" content="{html.escape(value)}">' for key, value in fields.items()
    )
    page = page.replace(version[0], metas)
    return re.sub(r'<meta name="date" content="[^"]*">', "", page).encode()


class Viewer(BaseHTTPRequestHandler):
    """HTTP handler that serves the page, its parts and the graph, to this machine only."""

    def __init__(self, *arguments: Any, graph: Path, folder: Path) -> None:
        self.graph, self.viewer = graph, folder
        super().__init__(*arguments)

    def do_GET(self) -> None:
        """Serve the page at the root, the graph under /data, else a part of the viewer."""
        host = self.headers.get("Host", "")
        if not HOSTS.fullmatch(host):
            # a foreign page may have its own name resolve to this machine
            return self.send_error(421, "only localhost is served")
        path = unquote(self.path.partition("?")[0])
        name = posixpath.normpath(path).lstrip("/")
        part = self.viewer / name
        if name in (".", "", "index.html"):
            self.give(viewer_page(self.viewer, self.graph.name), "text/html; charset=utf-8")
        elif name == f"data/{self.graph.name}":
            self.give(self.graph.read_bytes(), "application/octet-stream")
        elif part.parent == self.viewer and part.suffix in PARTS and part.is_file():
            self.give(part.read_bytes(), PARTS[part.suffix])
        else:
            self.send_error(404, "no such part")

    def give(self, content: bytes, kind: str) -> None:
        """Send `content` with content type `kind`."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self) -> None:
        """Allow requests to this server only; skip the consent dialog, since nothing is sent."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


def open_server(graph: Path, *, port: int) -> ThreadingHTTPServer:
    """Return a server of the viewer, for `serve_forever`; port 0 takes a free port.

    Raises TightropeError if the port is in use or netron is missing.
    """
    handler = partial(Viewer, graph=graph, folder=viewer_folder())
    try:
        return ThreadingHTTPServer((HOST, port), handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TightropeError(
            f"port {port}: {reason}; name another: make netron PORT=..."
        ) from error

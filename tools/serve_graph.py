"""Serve a graph in the Netron viewer: `serve_graph.py MODEL [GRAPH] [PORT]`; see `make netron`."""

import os
import sys
import webbrowser
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tightrope.errors import TightropeError
from tightrope.report.graphs.netron import graph_file, open_server


def main(model: str = "", graph: str = "simplified", port: str = "0") -> None:
    """Serve until interrupted."""
    if not (port.isascii() and port.isdigit()):
        raise TightropeError(f"PORT={port}: no number")
    server = open_server(graph_file(model, graph), port=int(port))
    address = f"http://localhost:{server.server_port}"
    print(f"{model} {graph}: {address} (Ctrl-C ends it)", flush=True)
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(address)
    server.serve_forever()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        print()
    except TightropeError as error:
        sys.exit(f"error: {error}")

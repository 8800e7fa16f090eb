"""TVM's tuning records: kept from build to build, and begun anew where they are broken."""

import json
from pathlib import Path
from typing import Any

from tightrope.jobs.child import supervised
from tiny_model import LIMITS


def tune(work: Path, seconds: float) -> dict[str, Any]:
    """Run in a child, which alone loads TVM: tune one small product."""
    from tightrope.engines.tvm import host_target, set_threads
    from tightrope.runtimes.tvm.tiles import Product
    from tightrope.runtimes.tvm.tuning import tuned

    set_threads(1)
    product = Product(1, 16, 32, 16, "float32")
    found, facts = tuned([[product]], host_target(1), seconds=seconds, work=work)
    return {**facts, "tiles": list(found.get(product, ()))}


def test_records_are_kept_and_a_broken_file_is_begun_anew(tmp_path: Path) -> None:
    first = supervised(tune, tmp_path, 2.0, limits=LIMITS)
    assert first["candidates"] > 0
    (file,) = tmp_path.iterdir()
    again = supervised(tune, tmp_path, 0.0, limits=LIMITS)
    assert (again["tiles"], again["candidates"]) == (first["tiles"], first["candidates"])
    file.write_text(file.read_text()[:-20])
    assert supervised(tune, tmp_path, 0.0, limits=LIMITS)["tiles"] == []
    assert supervised(tune, tmp_path, 0.5, limits=LIMITS)["tiles"]
    assert json.loads(file.read_text())

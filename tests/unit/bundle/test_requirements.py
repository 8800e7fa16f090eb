"""Requirements are what is installed, complete, and what the engine was built with."""

from importlib.metadata import version

import pytest
from packaging.requirements import Requirement
from tightrope.bundle.facts import of_source
from tightrope.bundle.subject import pinned
from tightrope.engine_table import ENGINES
from tightrope.errors import TightropeError
from tightrope.machine.distributions import closure, licence_of
from tightrope.signature import IMAGE, TEXT


@pytest.mark.parametrize("engine", [name for name, one in ENGINES.items() if one.bundled])
def test_what_is_imported_and_what_that_needs_are_pinned_as_installed(engine: str) -> None:
    for task, own in ((TEXT, "tokenizers"), (IMAGE, "pillow")):
        packages = pinned(engine, task, {})
        for name in (*(ENGINES[engine].bundled or ()), "numpy", own):
            assert packages[name] == version(name).partition("+")[0]
        assert ("pillow" in packages) == (task == IMAGE)
        assert "snakemake" not in packages
        assert engine != "pytorch" or {"jinja2", "sympy", "huggingface-hub"} <= packages.keys()


def test_another_version_than_is_installed_is_refused() -> None:
    pinned("onnxruntime", TEXT, {"onnxruntime": version("onnxruntime"), "nncf": "0.1"})
    with pytest.raises(TightropeError, match=r"built with onnxruntime 0\.1, .* is installed"):
        pinned("onnxruntime", TEXT, {"onnxruntime": "0.1"})
    with pytest.raises(ValueError, match=r"numpy .* is installed, numpy<1 is asked for"):
        closure([Requirement("numpy<1")])


def test_licences_are_those_that_distributions_state() -> None:
    assert licence_of("openvino") == "Apache-2.0"
    assert "MIT" in str(licence_of("onnxruntime"))
    assert of_source("package:numpy/core").startswith("BSD-3-Clause")
    assert of_source("docstrings:pandas,numpy").startswith("pandas: BSD-3-Clause; numpy: BSD")
    assert of_source("hub:org/model@main") == "stated on the page of org/model@main"
    assert of_source("path:mine") == "not stated: path:mine"
    assert of_source("package:no_such_package/x") == "not stated"

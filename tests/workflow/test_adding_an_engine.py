"""docs/adding-an-engine.md, done: a runtime in numpy, measured like all others."""

from pathlib import Path

from tiny_project import MODEL, Project

PARTS = Path(__file__).parents[1] / "data" / "numpy_engine"
TABLE = '    "tensorrt": Engine(\n'
LINE = '    "numpy": Engine({"cpu": ("fp32",)}, ("onnx",), "onnx"),\n'


def add_engine(project: Project) -> int:
    """Add the engine as the document says; how many lines were written."""
    module = (PARTS / "engine.py").read_text()
    (project / "scripts/tightrope/engines/numpy.py").write_text(module)
    project.edit("scripts/tightrope/engine_table.py", TABLE, LINE + TABLE)
    project.edit(
        "config/schema.yaml",
        "      tvm: *precisions\n",
        "      tvm: *precisions\n      numpy: *precisions\n",
    )
    colours = '    "tvm": ("#482f02", "#946b17"),\n'
    project.edit(
        "scripts/tightrope/report/style/palette.py",
        colours,
        colours + '    "numpy": ("#777", "#999"),\n',
    )
    one_line_each = ("the table", "the schema", "the colour", "the configuration")
    written = [text for text in module.splitlines() if text.strip()]
    return len(written) + len(one_line_each)


def test_an_engine_is_added_in_under_40_lines_and_measured_like_the_others(onnx_project) -> None:
    project = onnx_project
    assert add_engine(project) < 40
    project.configure(engines={"numpy": ["fp32"]})
    jobs = project.run()
    assert f"build_numpy/{MODEL}-cpu-fp32" in jobs
    found = project.results()["cpu-numpy-fp32"]
    assert (found["status"], found["reason"]) == ("ok", None)
    assert found["accuracy"]["flips"] == 0
    assert found["latency"][0]["speedup"]["ratio"] > 0
    assert found["executed"]["MatMul"]["fp32"] > 10

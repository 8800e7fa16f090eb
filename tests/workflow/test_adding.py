"""docs/adding-an-engine.md and docs/adding-a-study.md, done, measured like all others."""

import json
import re
from pathlib import Path

from tiny_project import MODEL, Project

TESTS = Path(__file__).parents[1]
PARTS, STUDY = TESTS / "data/numpy_engine", TESTS.parent / "docs/adding-a-study.md"
TABLE = '    "tensorrt": Engine(\n'
LINE = '    "numpy": Engine({"cpu": ("fp32",)}, ("onnx",), "onnx"),\n'
VARIANT = "cpu-onnxruntime-fp32"


def add_engine(project: Project) -> int:
    """Add a runtime in numpy as the document says; how many lines were written."""
    module = (PARTS / "engine.py").read_text()
    (project / "scripts/tightrope/engines/numpy.py").write_text(module)
    project.edit("scripts/tightrope/engine_table.py", TABLE, LINE + TABLE)
    colours = '    "tvm": ("#482f02", "#946b17"),\n'
    project.edit(
        "scripts/tightrope/report/style/palette.py",
        colours,
        colours + '    "numpy": ("#777", "#999"),\n',
    )
    one_line_each = ("the table", "the colour", "the configuration")
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


def test_a_study_is_a_file_of_at_most_120_lines_and_a_line_in_the_table(
    onnx_project: Project,
) -> None:
    """Latency by the number of threads, measured and shown."""
    project = onnx_project
    study, table = re.findall(r"```python\n(.*?)```", STUDY.read_text(), re.DOTALL)
    assert len(study.splitlines()) <= 120
    (project / "scripts/tightrope/studies/scaling.py").write_text(study)
    imported, named = table.strip().split("\n\n")
    file = "scripts/tightrope/studies/table.py"
    text = (project / file).read_text()
    (before,) = re.findall(r"^STUDIES = .*$", text, re.MULTILINE)
    project.edit(file, before, named)
    project.edit(file, "\n\nSTUDIES", f"\n{imported}\n\nSTUDIES")
    project.configure(scaling={"variants": [VARIANT], "threads": [1, 2, 64]})
    jobs = project.run()
    assert [name for name in jobs if "measure_" in name] == [f"measure_scaling/{MODEL}-{VARIANT}"]
    (entry,) = json.loads((project / "reports/summary.json").read_text())["studies"]["scaling"]
    assert (entry["status"], entry["reason"]) == ("ok", None)
    cores = [row["threads"] for row in entry["rows"]]
    assert cores and set(cores) <= {1, 2}
    page = (project / "reports/summary.html").read_text()
    section = page[page.index('<section id="scaling">') :].partition("</section>")[0]
    for words in ("Latency by threads", "A call, ms", "as a table", 'class="plot"'):
        assert words in section

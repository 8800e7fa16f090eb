"""docs/adding-a-study.md, done: latency by the number of threads, measured and shown."""

import json
import re
from pathlib import Path

from tiny_project import MODEL, Project

DOCUMENT = Path(__file__).parents[2] / "docs/adding-a-study.md"
VARIANT = "cpu-onnxruntime-fp32"


def test_a_study_is_a_file_of_at_most_120_lines_and_a_line_in_the_table(
    onnx_project: Project,
) -> None:
    project = onnx_project
    study, table = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
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

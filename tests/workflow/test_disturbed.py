"""What other load has disturbed: the report says so, and only that is measured again."""

from disturbed import QUIET, WAITED
from msgspec import to_builtins
from tiny_project import CONFIG, MODEL, ONNX_VARIANTS, RACE, REPORT, SUMMARY, Project

FP32 = "cpu-openvino-fp32"
COMMAND = "snakemake --cores 1 --config remeasure=disturbed"


def as_if_disturbed(project: Project, *variants: str) -> None:
    """Other load disturbed every pair of these variants, and none of the others or of the race."""
    for variant in ONNX_VARIANTS:
        path = f"reports/{MODEL}/{variant}.latency.json"
        record = project.read(path)
        for shape in record["shapes"]:
            pair = WAITED if variant in variants else QUIET
            shape["pairs"] = [pair] * len(shape["pairs"])
            shape["foreign_cores"] = [1.0]
        project.rewrite(path, to_builtins(record))
    path = f"reports/{MODEL}/cpu.race.json"
    record = project.read(path)
    for shape in [shape for heat in record["heats"] for shape in heat["shapes"]]:
        shape["facts"] = {
            name: [fact and QUIET for fact in facts] for name, facts in shape["facts"].items()
        }
    project.rewrite(path, to_builtins(record))


def test_only_what_was_disturbed_is_measured_again_when_that_is_asked_for(onnx_project) -> None:
    project = onnx_project
    as_if_disturbed(project)
    assert project.plan("--config", "remeasure=disturbed") <= REPORT
    as_if_disturbed(project, FP32)
    again = {f"measure_latency/{MODEL}-{FP32}"} | RACE | REPORT
    assert project.plan("--config", "remeasure=disturbed") == again
    assert (project / f"reports/{MODEL}/{FP32}.latency.json").is_file(), "a dry run deletes nothing"


def test_on_a_machine_that_never_got_quiet_there_is_still_a_report_that_says_so(onnx_project):
    project = onnx_project
    as_if_disturbed(project, *ONNX_VARIANTS)
    project.configure(latency={**CONFIG["latency"], "accept_disturbed": False})
    given = "accuracy_budget_points=1.0"  # as configured: it changes nothing but is named
    assert project.run("--config", given, "strict=false") == RACE | REPORT
    summary = project.read(SUMMARY)
    assert summary["overrides"] == [given]
    for result in summary["results"]:
        for row in result["latency"]:
            assert (row["paired_s"], row["samples"]) == (None, 0)
            assert row["disturbed"].startswith("only 0 of 2 pairs of blocks were undisturbed")
    for one in summary["recommendations"]:
        assert (one["variant"], one["provisional"]) == (None, True)
        assert one["why"]["code"].endswith("disturbed")
    page = (project / "reports/summary.html").read_text()
    assert COMMAND.replace("remeasure", f"{given} remeasure") in page
    assert "accept_disturbed: true" in page

"""PyTorch in bf16 is a second yardstick beside the baseline, once it is measured."""

from tightrope.artifacts.files import read_json
from tiny_project import CONFIG, Project

BF16 = "cpu-pytorch-bf16"
COLUMN = "Over bf16, 95 %"


def speedups(project: Project) -> dict[str, list]:
    """The speed-ups over bf16 of each variant that was measured, by shape."""
    results = read_json(project / "reports/summary.json")["results"]
    return {
        one["variant"]: [row["speedup_over_bf16"] for row in one["latency"]]
        for one in results
        if one["status"] == "ok"
    }


def test_a_run_with_bf16_gives_speed_ups_over_it_beside_those_over_fp32(project: Project) -> None:
    before = speedups(project)
    assert not any(one for rows in before.values() for one in rows)
    assert COLUMN not in (project / "reports/summary.html").read_text()
    engines = {**CONFIG["engines"], "pytorch": ["fp32", "bf16"]}
    project.configure(engines=engines, emulated=True)
    project.run()
    found = speedups(project)
    assert found.pop(BF16) == [None, None]
    assert set(found) == set(before)
    for rows in found.values():
        for one in rows:
            assert one["low"] <= one["ratio"] <= one["high"]
    assert COLUMN in (project / "reports/summary.html").read_text()
    header = (project / "reports/summary.csv").read_text().splitlines()[0]
    assert "latency.speedup_over_bf16.ratio" in header

"""The names in the chart of trainings."""

import altair as alt
import pytest
from tightrope.report.sections.training import place_names, training_chart


def point(model: str, seconds: float, accuracy: float, *, last: bool = True) -> dict:
    told = {"epoch": 1, "low": accuracy - 1, "high": accuracy + 1, "told": "x", "last": last}
    return {"model": model, "seconds": seconds, "accuracy": accuracy, **told}


@pytest.mark.parametrize(
    ("points", "line", "heights"),
    [
        ((("a", 97.0, 17.2), ("b", 98.0, 17.3), ("c", 99.0, 25.0)), 0.8, [17.2, 18.0, 25.0]),
        # one that is moved moves the next
        ((("a", 90.0, 1.0), ("b", 90.0, 1.1), ("c", 90.0, 2.2)), 1.0, [1.0, 2.0, 3.0]),
        # names far from each other stand at their points
        ((("a", 12.0, 17.3), ("b", 97.0, 17.2)), 0.8, [17.3, 17.2]),
    ],
)
def test_names_of_trainings_that_end_together_are_a_line_apart(points, line, heights):
    placed = [*(point(*one) for one in points), point("b", 50.0, 17.2, last=False)]
    found = {one["model"]: one["name_at"] for one in place_names(placed, line=line)}
    assert found == pytest.approx(dict(zip("abc", heights, strict=False)))


def test_a_long_name_has_more_room_beside_the_slowest_training() -> None:
    def room(name: str) -> float:
        chart = training_chart([point(name, 10.0, 50.0)], description="d")
        alt.Chart.from_dict(chart)  # raises where it is no specification of Vega-Lite
        return chart["layer"][0]["encoding"]["x"]["scale"]["domain"][1]

    assert 10 < room("amp") < room("compiled-amp") < room(80 * "n") < 20

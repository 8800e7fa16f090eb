"""Each reason has a phrase."""

import ast
from pathlib import Path

from tightrope import decide
from tightrope.decide.phrases import PHRASES


def codes_in(tree: ast.AST) -> set[str]:
    """The texts in what a module gives `Reason.of` as a code, or first calls `code`."""
    given: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Reason.of":
            given.append(node.args[0])
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "code":
            given.append(node.value)
    parts = [part for one in given for part in ast.walk(one) if isinstance(part, ast.Constant)]
    return {part.value for part in parts if isinstance(part.value, str)}


def test_no_code_of_a_reason_is_without_its_phrase() -> None:
    modules = Path(decide.__file__).parent.glob("*.py")
    codes = set().union(*(codes_in(ast.parse(path.read_text())) for path in modules))
    assert {"slower", "none_faster", "no_traffic"} <= codes
    # a code may be put together of two texts
    without = {one for one in codes if not any(one in known for known in PHRASES)}
    assert without == {"goal"}, "its words are the decision's own"

"""What a job runs is in the digest of its code, else a change of it would make nothing stale."""

import ast
from functools import cache
from pathlib import Path

from tightrope.artifacts.provenance import code_digest, defined_by, sources_of
from tiny_project import Project


def test_every_function_that_a_job_runs_is_in_the_digest_of_its_code(whole: Project) -> None:
    scripts, reached = whole / "scripts", whole.folder.with_name("reached")
    entries = {
        digest: words
        for digest, *words in map(str.split, (reached / "digests").read_text().splitlines())
    }
    lines = {line for path in reached.glob("*.ran") for line in path.read_text().splitlines()}
    jobs: dict[tuple[str, str, str], set[tuple[str, int]]] = {}
    for rule, wildcards, code, path, _, line in (one.split("\t") for one in lines):
        jobs.setdefault((rule, wildcards, code), set()).add((path, int(line)))
    rules = {rule for rule, _, _ in jobs}
    assert {"train_model", "build_openvino", "measure_latency", "summarize"} <= rules
    for (rule, wildcards, code), functions in jobs.items():
        assert code_digest(scripts, *entries[code]) == code, (rule, wildcards)
        digested = set(sources_of(scripts).reached(entries[code]))
        ran = {
            (path.removesuffix(".py").replace("/", "."), top_level(scripts / path, line))
            for path, line in functions
        }
        assert not ran - digested, (rule, wildcards)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def top_level(path: Path, line: int) -> str:
    """The definition of a module in which a line is."""
    for node in parsed(path).body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        if first <= line <= (node.end_lineno or first):
            return (defined_by(node) or ["*"])[0]
    raise AssertionError(f"{path}:{line}")

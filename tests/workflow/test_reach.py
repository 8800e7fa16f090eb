"""What a job runs is in the digest of its code, else a change of it would make nothing stale."""

import ast
from pathlib import Path

from tightrope.artifacts.provenance import code_digest, sources_of
from tightrope.artifacts.reach import defined_by
from tightrope.variants import parse
from tiny_project import Project

# the rules whose script has another name, or which load something by name
SCRIPTS = {"summarize": "summarize.py", "split_data": "split_data.py"}
BY_NAME = {
    "prepare_data": ["tightrope/data/sources/text_files.py"],
    "prepare_checkpoint": ["tightrope/checkpoint/sources/scratch.py"],
}
BASELINE = "cpu-pytorch-fp32"
WITH_BASELINE = ("measure_latency",)


def entries(rule: str, wildcards: dict[str, str], raced: list[str]) -> list[str]:
    """What is digested of a job of the tiny project."""
    if rule.startswith("build_"):
        engine = rule.removeprefix("build_")
        return ["build_engine.py", f"tightrope/engines/{engine}.py:build"]
    variants = [wildcards["variant"]] if "variant" in wildcards else []
    if rule in WITH_BASELINE:
        variants.append(BASELINE)
    if rule == "race_finalists":
        variants = raced
    engines = sorted({parse(one).engine for one in variants})
    functions = ["build", "load"] if rule == "verify_causes" else ["load"]
    loaded = [f"tightrope/engines/{one}.py:{name}" for one in engines for name in functions]
    return [f"{rule}.py", *BY_NAME.get(rule, []), *loaded]


def test_every_function_that_a_job_runs_is_in_the_digest_of_its_code(
    unrun: Project, repository: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "reached"
    folder.mkdir()
    unrun.run(PYTHONPATH=str(repository / "tests/support/profiled"), REACHED=str(folder))
    scripts = unrun / "scripts"
    lines = {line for path in folder.iterdir() for line in path.read_text().splitlines()}
    jobs: dict[tuple[str, str, str], set[tuple[str, str, int]]] = {}
    for rule, wildcards, code, path, name, line in (one.split("\t") for one in lines):
        jobs.setdefault((rule, wildcards, code), set()).add((path, name, int(line)))
    raced = [path.parent.name for path in unrun.folder.glob("artifacts/*/engines/*/engine.json")]
    rules = {rule for rule, _, _ in jobs}
    assert {"train_model", "build_openvino", "measure_latency", "summarize"} <= rules
    for (rule, words, code), functions in jobs.items():
        wildcards = dict(one.split("=", 1) for one in words.split(",") if one)
        digested = entries(rule, wildcards, raced)
        assert code_digest(scripts, *digested) == code, (rule, words)
        reached = set(sources_of(scripts).reached(digested))
        unknown = {
            f"{path}: {name}"
            for path, name, line in functions
            if (path.removesuffix(".py").replace("/", "."), top_level(scripts / path, line))
            not in reached
        }
        assert not unknown, (rule, words)


def top_level(path: Path, line: int) -> str:
    """The definition of a module in which a line is."""
    for node in ast.parse(path.read_text()).body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        if first <= line <= (node.end_lineno or first):
            return (defined_by(node) or ["*"])[0]
    raise AssertionError(f"{path}:{line}")

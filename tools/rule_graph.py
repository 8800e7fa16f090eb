"""Draw the rules of a run into docs/architecture.md: `make rule-graph`; with --check, compare.

From Snakemake's own graph of rules, in Mermaid's language, without the edges that follow from
others. An edge that closes a circle is dashed: quantize_onnx comes before the search of int8-auto,
and again after it.
"""

import re
import subprocess
import sys
from pathlib import Path

import networkx

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/architecture.md"
FENCE = re.compile(r"(?<=```mermaid\n).*?(?=```)", re.DOTALL)


def rule_graph() -> networkx.DiGraph:
    """The rules of the default run on a CPU, an edge from each to those that read its files."""
    words = [sys.executable, "-m", "snakemake", "--rulegraph", "mermaid-js"]
    words += ["--config", "devices=[cpu]"]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    names = dict(re.findall(r"^\s*(id\d+)\[(\w+)\]", done.stdout, re.MULTILINE))
    edges = re.findall(r"^\s*(id\d+) --> (id\d+)", done.stdout, re.MULTILINE)
    graph = networkx.DiGraph(sorted((names[one], names[other]) for one, other in edges))
    graph.remove_node("all")
    # int8-bf16 of OpenVINO is made from its int8, on processors that have bf16
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    return graph


def mermaid() -> str:
    """The graph in Mermaid's language."""
    graph, closing = rule_graph(), []
    while not networkx.is_directed_acyclic_graph(graph):
        closing.append(networkx.find_cycle(graph, "calibrate")[-1])
        graph.remove_edge(*closing[-1])
    kept = networkx.transitive_reduction(graph)
    lines = ["flowchart TB"]
    lines += [f"    {one} --> {' & '.join(sorted(kept[one]))}" for one in sorted(kept) if kept[one]]
    lines += [f"    {one} -.-> {other}" for one, other in closing]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the graph into the page, or end with an error where it has another one."""
    page, graph = PAGE.read_text(), mermaid()
    if "--check" not in sys.argv:
        PAGE.write_text(FENCE.sub(lambda _: graph, page, count=1))
    elif FENCE.search(page)[0] != graph:
        sys.exit(f"{PAGE.relative_to(ROOT)} has another graph of rules: run `make rule-graph`")


if __name__ == "__main__":
    main()

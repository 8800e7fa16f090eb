"""What a sweep of 24 machine-hours would take on more nodes, from the recorded jobs of a run.

    .venv/bin/python benchmarks/studies/replay.py docs/results/sweep.svg

The jobs are those of the default configuration on this machine, the seconds of their rules those of
docs/results/decision.md. They are copied for as many models as fill the hours: as they were, or for
fewer models with longer jobs. They are placed by list scheduling on
nodes of one kind: of the jobs that are ready and fit, that with the longest way to the report
first. A job that measures or trains has a node to itself. The begin of the run, the summary and the
page are on the head node. Prints a table in Markdown and draws the speed-ups.
"""

import argparse
import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import altair as alt
from replayed_jobs import jobs_of_run

# cores of a node, and what a job takes of them unless it has the whole node; 0 on the head node
CORES, SHARED = 16, 4
HOURS = 24.0
NODES = (1, 2, 4, 8, 16, 32, 64, 128)
# seconds from a job to one that needs it: queue, start of Python, check of the end (half of 20 s)
BETWEEN = 15.0
# planning and summary of each variant, see docs/results/operations.md, and of the page
PLAN_S, SUMMARY_S, PAGE_S = 0.0126, 0.0076, 8.0
REPOSITORY = Path(__file__).parents[2]
DEFAULT, LATER = REPOSITORY / "docs/results/decision.md", "measure_accuracy"
HEAD = ("summarize", "render_report")
# what has a node to itself besides what begins with `measure_`
WHOLE = ("race_finalists", "race_family", "train_model")


@dataclass
class Task:
    """A job: `after` need it, it needs so many `before`, `tail` is the longest way to the end."""

    seconds: float
    cores: int
    after: list[int] = field(default_factory=list)
    before: int = 0
    tail: float = 0.0


def main() -> None:
    """Replay the sweeps, print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("picture", type=Path)
    words = parser.parse_args()
    picture = words.picture.absolute()  # the jobs have their own working directory
    model, variants = recorded()
    hours = work(model) / 3600
    alone = sum(one.seconds for one in model if one.cores == CORES) / 3600
    print(f"one model: {len(model)} jobs of {variants} variants, {60 * hours:.1f} machine-minutes,")
    print(f"{alone / hours:.0%} of them in jobs that have a node to themselves\n")
    print("| sweep | nodes | hours | speed-up | busy | held up by |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    points = []
    for models in (max(1, round(HOURS / hours)), 32, 4):
        longer, begin = HOURS / (models * hours), 2 + PLAN_S * models * variants
        tasks = sweep(model, models, longer, SUMMARY_S * models * variants)
        name = f"{models} models, jobs {longer:.3g} times as long"
        single = makespan(tasks, 1, begin)
        for nodes in NODES:
            took = makespan(tasks, nodes, begin)
            points.append({"sweep": name, "nodes": nodes, "speed-up": single / took})
            cells = [name, nodes, f"{took / 3600:.2f}", f"{single / took:.1f}"]
            cells += [f"{work(tasks) / (nodes * took):.0%}", held_up_by(tasks, nodes, begin)]
            print(f"| {' | '.join(map(str, cells))} |")
    draw(points, picture)


def of_default_run() -> dict[str, float]:
    """Return the mean seconds of each rule that docs/results has of the default run, host B."""
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", DEFAULT.read_text(), re.MULTILINE)
    cells = {rule: [cell.strip() for cell in row.split("|")] for rule, row in rows}
    return {rule: float(row[4]) / int(row[2]) for rule, row in cells.items() if row[4]}


def recorded() -> tuple[list[Task], int]:
    """Return the jobs of a default run, of rules that came later as long as LATER; its variants."""
    seconds = of_default_run()
    jobs = [job for job in jobs_of_run(REPOSITORY) if job.rule not in HEAD]
    whole = [job.rule.startswith("measure_") or job.rule in WHOLE for job in jobs]
    tasks = [
        Task(seconds.get(job.rule, seconds[LATER]), CORES if alone else SHARED)
        for job, alone in zip(jobs, whole, strict=True)
    ]
    maker = {str(path): number for number, job in enumerate(jobs) for path in job.given["output"]}
    for number, job in enumerate(jobs):
        for needed in {maker[path] for path in map(str, job.given["input"]) if path in maker}:
            tasks[needed].after.append(number)
            tasks[number].before += 1
    return tasks, sum(job.rule == "measure_latency" for job in jobs)


def work(tasks: Iterable[Task]) -> float:
    """Return the node-seconds of these jobs."""
    return sum(task.seconds * task.cores / CORES for task in tasks)


def sweep(model: Sequence[Task], models: int, longer: float, summary: float) -> list[Task]:
    """Return so many copies of a model's jobs, so many times as long, with a summary and a page."""
    tasks = [
        Task(one.seconds * longer, one.cores, [base + later for later in one.after], one.before)
        for base in range(0, models * len(model), len(model))
        for one in model
    ]
    last = len(tasks)
    ends = [task for task in tasks if not task.after]
    for task in ends:
        task.after.append(last)
    tasks += [Task(summary, 0, [last + 1], len(ends)), Task(PAGE_S, 0, [], 1)]
    for task in reversed(in_order(tasks)):
        later = [tasks[number].tail + BETWEEN for number in task.after]
        task.tail = task.seconds + max(later, default=0.0)
    return tasks


def in_order(tasks: Sequence[Task]) -> list[Task]:
    """Return the jobs so that each comes after those that it needs."""
    left = [task.before for task in tasks]
    ready = [number for number, count in enumerate(left) if not count]
    for number in ready:
        for later in tasks[number].after:
            left[later] -= 1
            if not left[later]:
                ready.append(later)
    return [tasks[number] for number in ready]


def makespan(tasks: Sequence[Task], nodes: int, begin: float) -> float:
    """Return the seconds from the begin of the run to the page on so many nodes."""
    left = [task.before for task in tasks]
    free = dict.fromkeys(range(nodes), CORES)
    ready: dict[int, list[tuple[float, int]]] = defaultdict(list)
    # when, which job, and the node where it has ended: -1 is the head node, -2 that it is ready
    events = [(begin, number, -2) for number, count in enumerate(left) if not count]
    while events:
        now, number, node = heapq.heappop(events)
        task = tasks[number]
        if node == -2:
            heapq.heappush(ready[task.cores], (-task.tail, number))
        else:
            free.update({node: free[node] + task.cores} if node >= 0 else {})
            for later in task.after:
                left[later] -= 1
                if not left[later]:
                    heapq.heappush(events, (now + BETWEEN, later, -2))
        if not events or events[0][0] > now:
            for started, where in placed(ready, free):
                heapq.heappush(events, (now + tasks[started].seconds, started, where))
    return now


def placed(
    ready: dict[int, list[tuple[float, int]]], free: dict[int, int]
) -> Iterable[tuple[int, int]]:
    """Yield each ready job that fits, and its node; that with the longest way to the page first."""
    while fits := {
        cores: node for cores, queue in ready.items() if queue for node in room(free, cores)
    }:
        cores = min(fits, key=lambda one: ready[one][0])
        if cores:
            free[fits[cores]] -= cores
        yield heapq.heappop(ready[cores])[1], fits[cores]


def room(free: dict[int, int], cores: int) -> list[int]:
    """Return the fullest node with so many free cores, -1 for the head node, nothing for none."""
    found = ((left, node) for node, left in free.items() if left >= cores)
    return [-1] if not cores else [node for _, node in heapq.nsmallest(1, found)]


def held_up_by(tasks: Sequence[Task], nodes: int, begin: float) -> str:
    """Return what no schedule on so many nodes could shorten."""
    longest, shared = max(task.tail for task in tasks), work(tasks) / nodes
    return f"the longest way, {longest / 60:.0f} min" if longest > shared else "all of the work"


def draw(points: list[dict[str, str | float]], picture: Path) -> None:
    """Draw the speed-up by nodes, beside the ideal."""
    scale = alt.Scale(type="log", base=2)
    axes = {"x": alt.X("nodes:Q", scale=scale), "y": alt.Y("speed-up:Q", scale=scale)}
    ideal = alt.Data(values=[{"nodes": nodes, "speed-up": nodes} for nodes in NODES])
    line = alt.Chart(ideal).mark_line(strokeDash=[4], color="gray").encode(**axes)
    sweeps = alt.Chart(alt.Data(values=points)).mark_line(point=True)
    colour = alt.Color("sweep:N", sort=None, legend=alt.Legend(title=None, labelLimit=300))
    (line + sweeps.encode(**axes, color=colour)).properties(width=480, height=320).save(picture)


if __name__ == "__main__":
    main()

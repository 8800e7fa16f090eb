"""Finished tiny runs whose artifacts are mutated, their kinds of files, and who reads these."""

import hashlib
import random
import re
import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from replayed_jobs import Job, jobs_of_run
from reproduced import ENGINES
from tiny_project import MODEL, ONNX_MODELS, Project, new_project, write_own_onnx, write_texts

REPOSITORY = Path(__file__).parents[2]
OTHER = "other"
CREATED = re.compile(rb'^ "created": ".*",\n', re.MULTILINE)
SECRET, SEALS = ".snakemake/tightrope/secret", ".snakemake/tightrope/seals"
# kinds by the path below artifacts/{model} or reports/{model}, the first that fits
KINDS = {
    "seal": rf"{SEALS}/(artifacts|reports)/.*",
    "secret": SECRET,
    "seconds of a step": r"artifacts/\w+/.*\.tsv",
    "data.json": r"artifacts/\w+/data/data\.json",
    "examples": r"artifacts/\w+/data/.*",
    "split": r"artifacts/\w+/splits/.*",
    "checkpoint.json": r"artifacts/\w+/(source|checkpoint)/checkpoint\.json",
    "beside checkpoint.json": r"artifacts/\w+/(source|checkpoint)/.*",
    "ONNX file": r"artifacts/\w+/model(\.simplified)?\.onnx",
    "calibration cache": r"artifacts/\w+/calibration/.*",
    "quantized ONNX file": r"artifacts/\w+/quantized/.*",
    "engine.json": r"artifacts/\w+/engines/.*/engine\.json",
    "beside engine.json": r"artifacts/\w+/engines/.*",
    "audit": r"artifacts/\w+/audit/.*",
    "peaks": r"artifacts/.*peaks.*\.json",
    "requests": r"artifacts/\w+/requests\.json",
    "latency record": r"reports/\w+/.*\.latency\.json",
    "accuracy record": r"reports/\w+/.*\.accuracy\.json",
    "logits": r"reports/\w+/.*\.logits\.npy",
    "race record": r"reports/\w+/.*\.race\.json",
    "profile record": r"reports/\w+/.*\.profile\.json",
    "graph": r"reports/\w+/graphs/.*\.json",
    "summary.json": r"reports/summary\.json",
}


class Finished:
    """A finished run, kept as it is, and a copy that is mutated and restored."""

    def __init__(self, pristine: Project, working: Project) -> None:
        self.pristine, self.working = pristine, working
        self.jobs = jobs_of_run(working.folder)

    @cached_property
    def by_kind(self) -> dict[str, list[str]]:
        """Return the files of each kind that a job reads."""
        found: dict[str, list[str]] = {}
        for path in sorted(states(self.pristine)):
            kind = next((kind for kind, place in KINDS.items() if re.fullmatch(place, path)), None)
            if kind is not None and self.readers(path):
                found.setdefault(kind, []).append(path)
        return found

    def readers(self, path: str) -> list[Job]:
        """Return the jobs that depend on a file, or on a manifest that lists it."""
        if path == SECRET:
            return self.jobs
        sealed, path = path.startswith(SEALS), path.removeprefix(f"{SEALS}/")
        if sealed and re.fullmatch(r".*/engines/.*\.onnx", path):
            return []  # of such a file the digest in engine.json counts
        beside = {"data": "data.json", "source": "checkpoint.json", "checkpoint": "checkpoint.json"}
        manifests = {path}
        for above in Path(path).parents:
            name = beside.get(above.name, "engine.json" if above.parent.name == "engines" else "")
            manifests |= {f"{above}/{name}"} if name else set()
        if any(one.endswith("data/data.json") for one in manifests - {path}):
            model = Path(path).parents[1]
            splits = ("train", "evaluation", "calibration", "timing")
            manifests |= {f"{model}/splits/{split}.json" for split in splits}
        found = [job for job in self.jobs if manifests & {*map(str, job.given["input"])}]
        if not path.endswith(".json") or Path(path).name in ("config.json", "tokenizer.json"):
            # the race loads the finalists alone, and the summary no engine
            unread = ("race_finalists", *(["summarize"] if "/engines/" in path else []))
            found = [job for job in found if job.rule not in unread]
        return found

    def others(self, path: str) -> list[str]:
        """Return the files of the same kind, of another model or variant, with other bytes."""
        kinds = [paths for paths in self.by_kind.values() if path in paths]
        content = (self.pristine / path).read_bytes()
        suffix = Path(path).suffix
        return [
            one
            for paths in kinds
            for one in paths
            if one != path
            and Path(one).suffix == suffix
            and (self.pristine / one).read_bytes() != content
        ]


class Kinds:
    """The files of several finished runs by kind."""

    def __init__(self, projects: list[Finished]) -> None:
        self.projects = projects
        self.names = [kind for kind in KINDS if any(kind in one.by_kind for one in projects)]

    def choose(self, seed: int, draw: random.Random) -> tuple[str, Finished, str]:
        """Return a kind by turns, and a file of it with its run."""
        kind = self.names[seed % len(self.names)]
        project = draw.choice([one for one in self.projects if kind in one.by_kind])
        return kind, project, draw.choice(project.by_kind[kind])


def finished_projects(folder: Path) -> Iterator[Finished]:
    """Yield a run of a model in PyTorch, and one of two models as ONNX files with a profile.

    They are made where the folder does not hold them.
    """
    if not (folder / "onnx").exists():
        folder.mkdir(exist_ok=True)
        Project.seconds = 3600  # other load may be beside it
        fresh = new_project(REPOSITORY, folder / "fresh")
        trained = fresh.copy(folder / "pytorch")
        trained.configure(engines=ENGINES)
        trained.run()
        made = Project(fresh.copy(folder / "onnx.part").folder, two_models())
        write_own_onnx(made, trained)
        write_texts(made / "others.csv", seed=1)
        profile: dict[str, Any] = {"variants": ["cpu-openvino-fp32"]}
        made.configure(
            engines={"onnxruntime": ["fp32", "int8"], "openvino": ["fp32"]}, profile=profile
        )
        made.run()
        made.folder.rename(folder / "onnx")
    for name in ("pytorch", "onnx"):
        shutil.rmtree(folder / f"{name}.working", ignore_errors=True)
        pristine = Project(folder / name)
        working = pristine.copy(folder / f"{name}.working")
        # today's code, also where the run is an older one
        for part in ("rules", "scripts"):
            shutil.copytree(REPOSITORY / part, working / part, dirs_exist_ok=True)
        yield Finished(pristine, working)


def two_models() -> dict[str, Any]:
    """Return the models of the second run: the same ONNX file with other texts."""
    model = ONNX_MODELS[MODEL]
    return {MODEL: model, OTHER: {**model, "data": "files:others.csv"}}


def swapped(project: Project, path: str, other: str) -> str:
    """Put a copy of another file in the place of one; return the name of the other."""
    shutil.copyfile(project / other, project / path)
    return other


def seal_of(path: str) -> str:
    """Return where the seal of a file is."""
    return f"{SEALS}/{path}"


def states(project: Project) -> dict[str, str]:
    """Return a digest of each file of artifacts, reports and seals, and of what a user gave."""
    found = {}
    for top in ("artifacts", "reports", SEALS, SECRET, "config", "own", "texts.csv", "others.csv"):
        place = project / top
        for path in [place, *place.rglob("*")] if place.is_dir() else [place]:
            if not path.is_dir() and "/logs/" not in str(path):
                found[path.relative_to(project.folder).as_posix()] = state(path)
    return found


def state(path: Path) -> str:
    """Return what is at a path, and a digest of it where it is a file, but of when it was made."""
    if path.is_fifo():
        return "pipe"
    try:
        if not path.is_file():
            return "device" if path.exists() else "nothing"
        return hashlib.sha256(CREATED.sub(b"", path.read_bytes())).hexdigest()
    except OSError as error:
        return str(error.errno)


def restore(pristine: Project, working: Project, mutated: str) -> None:
    """Make the working copy what it was, and the mutated file in any case."""
    place = working / mutated
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    was, now = states(pristine), states(working)
    for path in now.keys() - was.keys():
        (working / path).unlink(missing_ok=True)
    for path in was:
        source, target = pristine / path, working / path
        if path == mutated or now.get(path) != was[path]:
            target.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)

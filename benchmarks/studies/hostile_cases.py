"""A hostile file as a case, and the sandbox in which the pipeline takes it."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from replayed_jobs import End, Job, forget_modules, in_fork, run_again
from tightrope.plan.config import checked
from tiny_project import CONFIG, MODEL, Project, write_texts

REPOSITORY = Path(__file__).parents[2]
SECRET = b"what only its owner may read, 5f2d"
SECONDS = 60
ROOT = f"artifacts/{MODEL}"
OF_IMAGES = {"shapes": [{"batch": 1, "height": 16, "width": 16}], "buckets": {"batch": [1]}}
# the jobs that read what a case is about
DATA = ("prepare_data",)
CHECKPOINT = ("prepare_checkpoint", "prepare_data", "train_model")
ONNX = (*CHECKPOINT, "split_data", "export_onnx", "simplify_onnx")
FILES = {
    "prepare_data": ({}, {"manifest": f"{ROOT}/data/data.json"}),
    "prepare_checkpoint": ({}, {"manifest": f"{ROOT}/source/checkpoint.json"}),
    "train_model": (
        {"source": f"{ROOT}/source/checkpoint.json", "data": f"{ROOT}/data/data.json"},
        {"manifest": f"{ROOT}/checkpoint/checkpoint.json"},
    ),
    "split_data": (
        {"data": f"{ROOT}/data/data.json"},
        {"manifest": f"{ROOT}/splits/timing.json"},
    ),
    "export_onnx": (
        {"checkpoint": f"{ROOT}/checkpoint/checkpoint.json"},
        {"onnx": f"{ROOT}/model.onnx"},
    ),
    "simplify_onnx": (
        {
            "onnx": f"{ROOT}/model.onnx",
            "checkpoint": f"{ROOT}/checkpoint/checkpoint.json",
            "data": f"{ROOT}/splits/timing.json",
        },
        {"onnx": f"{ROOT}/model.simplified.onnx"},
    ),
}


@dataclass(frozen=True)
class Case:
    """A hostile file: `make` writes it into the sandbox and returns the keys of its model.

    `named` are words of which an error has to have one. `harmless` says that it may be taken.
    Without `jobs` the bytes that `make` returns are the configuration of a dry run, which Snakemake
    may refuse `before_us`.
    """

    name: str
    make: Callable[["Sandbox"], Any]
    named: tuple[str, ...]
    jobs: tuple[str, ...] = ()
    harmless: bool = False
    before_us: bool = False


@dataclass
class Ended:
    """How the pipeline took a case."""

    code: int | str
    said: str
    errors: list[str] = field(default_factory=list)

    @property
    def hangs(self) -> bool:
        """Whether it did not end."""
        return self.code == "hang"


class Section(dict[str, Any]):
    """Named values of a job, as Snakemake has them."""

    __getattr__ = dict.__getitem__


class Sandbox:
    """A folder of a run, with other folders beside it that are none of its business."""

    def __init__(self, folder: Path, project: Project) -> None:
        self.folder, self.project = folder, project
        self.run_folder, self.outside = folder / "run", folder / "outside"
        self.marker = folder / "marker"
        for one in (self.run_folder, self.outside, folder / "home"):
            one.mkdir(parents=True)
        (self.outside / "private.png").write_bytes(SECRET)
        (self.outside / "private.txt").write_bytes(SECRET)
        self.before = self.all_outside()
        os.chdir(self.run_folder)
        write_texts(Path("texts.csv"), seed=0)

    def __truediv__(self, path: str) -> Path:
        target = self.run_folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    @property
    def payload(self) -> str:
        """A shell command that proves that it ran."""
        return f"touch {self.marker}"

    def all_outside(self) -> dict[str, bytes]:
        """Return the files beside the folder of the run."""
        tops = (self.outside, self.folder / "home")
        found = [path for top in tops for path in top.rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in found if ".cache" not in path.parts}

    def changed_outside(self) -> list[str]:
        """Return the files beside the folder of the run that are new or changed."""
        after = self.all_outside()
        names = {*after, *self.before}
        return sorted(name for name in names if after.get(name) != self.before.get(name))

    def secret_is_inside(self) -> bool:
        """Return whether the content of a private file is in what was made."""
        made = (path for path in Path(self.run_folder, "artifacts").rglob("*") if path.is_file())
        return any(SECRET in path.read_bytes() for path in made)

    def failure_is_recorded(self) -> bool:
        """Return whether a job wrote a failure in the place of its ONNX file."""
        made = Path(self.run_folder, "artifacts").rglob("*.onnx")
        return any(b"tightrope.failed" in path.read_bytes() for path in made)

    def run(self, case: Case) -> Ended:
        """Give the case to the pipeline."""
        given = case.make(self)
        if not case.jobs:
            return self.dry_run(given)
        model = {**CONFIG["models"][MODEL], "train": None, "data": "random", **given}
        config = {**CONFIG, "models": {MODEL: model}}
        if "task" in given:
            config |= {**OF_IMAGES, "models": {MODEL: given}}
        log = self / f"{ROOT}/plan.log"
        ended = End(in_fork(lambda: plan(config, log), SECONDS), log.read_text())
        if ended.code == 0:
            model = checked(config, SCHEMA)["models"][MODEL]
        for rule in case.jobs:
            if ended.code == 0:
                ended = run_again(self.job(rule, model), self.project / "scripts", SECONDS + 30)
        return Ended(ended.code, ended.said, ended.errors)

    def job(self, rule: str, model: Mapping[str, Any]) -> Job:
        """Return the job of a rule for a model."""
        inputs, outputs = FILES[rule]
        params = {**model, "threads": 2, "libraries": {}, "code": ""}
        params |= {"state": f"{ROOT}/work/training", "prune": {}}
        params |= {"limits": {"train": None, "evaluation": None}}
        sizes = {"train_size": 3, "evaluation_size": 3, "calibration_size": 3}
        # with a limit of 54 s of their own
        resources = {"mem_mb": 6000, "runtime": 1, "gpu": 0, "last_attempt": 1, **sizes}
        given = {"input": Section(inputs), "output": Section(outputs), "params": Section(params)}
        given["wildcards"] = Section(model=MODEL, split="timing")
        given |= {"resources": Section(resources), "log": [f"artifacts/logs/{rule}.log"]}
        return Job(rule, self.project / f"scripts/{rule}.py", given)

    def dry_run(self, configuration: bytes) -> Ended:
        """Plan a run with a configuration file of these bytes."""
        project = self.project
        shutil.copytree(project.folder, self.run_folder, dirs_exist_ok=True)
        project = Project(self.run_folder)
        (project / "config/config.yaml").write_bytes(configuration)
        try:
            done = project.snakemake("--dry-run", "--quiet", "all")
        except Exception as error:
            return Ended("hang", str(error))
        lines = (line for line in done.stdout.splitlines() if line.strip())
        errors = [line for line in lines if not line.startswith("Using workflow specific profile")]
        return Ended(done.returncode, done.stdout, errors)


def plan(config: dict[str, Any], log: Path) -> None:
    """Check and plan a configuration in this process, as each run does before its jobs."""
    forget_modules()
    from tightrope.errors import TightropeError
    from tightrope.plan.config import checked
    from tightrope.plan.plan import make_plan

    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    try:
        make_plan(checked(yaml.safe_load(yaml.safe_dump(config)), SCHEMA))
    except TightropeError as error:
        print(f"error: {error}", flush=True)
        sys.exit(1)


SCHEMA = REPOSITORY / "config/schema.yaml"

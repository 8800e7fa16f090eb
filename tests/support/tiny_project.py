"""A tiny project that is run for real, and Snakemake's command line in it."""

import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import onnx
import warm_snakemake
import yaml
from artifact_files import written

MODEL = "tiny"
VARIANTS = (
    "cpu-pytorch-fp32",
    "cpu-onnxruntime-int8-minmax-8",
    "cpu-openvino-fp32",
    "cpu-openvino-bf16",
    "cpu-openvino-int8-nncf-8",
)
CONFIG: dict[str, Any] = {
    "devices": ["cpu"],
    # the same jobs whatever the processor can
    "emulated": True,
    "threads": 2,
    "shapes": [
        {"batch": 1, "sequence": 8},
        {"batch": 2, "sequence": 8},
        {"batch": 2, "sequence": 8, "tokens": 5},
    ],
    "buckets": {"batch": [1, 4], "sequence": [8, 16]},
    "engines": {"onnxruntime": ["int8"], "openvino": ["fp32", "bf16", "int8"]},
    # auto would name other files on a CPU without VNNI
    "calibration": {
        **{"methods": ["minmax", "nncf"], "samples": [8], "pool": 32},
        "reduce_range": False,
    },
    "accuracy_budget_points": 1.0,
    # so that other programs on the machine of the tests leave no number out
    "latency": {
        "calls": 4,
        "pairs": 2,
        "warmup_calls": 1,
        "min_seconds": 0.02,
        "quiet_seconds": 0,
        "accept_disturbed": True,
    },
    "decision": {"seconds": 1},
    "profile": {"variants": []},
    "models": {
        MODEL: {
            "checkpoint": "scratch:bert?hidden_size=32&num_hidden_layers=2&num_attention_heads=2"
            "&intermediate_size=64&vocab_size=200&max_position_embeddings=32",
            "data": "files:texts.csv",
            "splits": {"train": 120, "evaluation": 40},
            "max_sequence": 16,
            # until its answers are better than chance
            "train": {"epochs": 12, "batch": 16, "learning_rate": 0.003, "sequence": 16},
        }
    },
}
TINY: dict[str, Any] = CONFIG["models"][MODEL]
# Everything that can be asked for, in one run: a model, one that starts from it (pruned, taught by
# it and trained for int8), one with another activation, one that comes as a quantized ONNX file,
# and each study of one variant. A variant with learnt ranges is of one model alone.
SMALL, RELU, GIVEN = "small", "relu", "given"
QUANTIZED = "own/quantized.onnx"
LEARNT, INT8 = "cpu-onnxruntime-int8-auto-qat-8", "cpu-openvino-int8-nncf-8"
WHOLE: dict[str, Any] = {
    "engines": {"onnxruntime": ["int8-auto"], "openvino": ["int8"]},
    "accuracy_budget_points": 20.0,
    "traffic": {"variants": [LEARNT], "batch": 4, "buckets": 2, "seconds": 0.2},
    "throughput": {"variants": [LEARNT], "batches": [1, 4], "sequence": 8, "seconds": 0.2},
    "idleness": {"variants": [LEARNT], "pauses": [0.01, 0.05]},
    "profile": {"variants": [LEARNT, INT8]},
    "explain": "verify",
    "training": {"epochs": 2, "seeds": [0, 1]},
    "models": {
        MODEL: TINY,
        SMALL: {
            "from": MODEL,
            "prune": {"parameters": 20_000},
            "distill": {"from": MODEL},
            "qat": {"scheme": "u8s8", "epochs": 1, "batch": 16, "sequence": 16, "device": "cpu"},
        },
        RELU: {**TINY, "activation": "relu"},
        GIVEN: {**TINY, "checkpoint": f"onnx:{QUANTIZED}", "quantized": True, "train": None},
    },
}
# The same model as an ONNX file of the user's own. No job that measures it imports PyTorch, which
# takes three seconds: for tests that run jobs again.
OWN_ONNX = "own/model.onnx"
OWN_INPUTS = {"input_ids": "ids", "attention_mask": "mask"}
OWN = {"checkpoint": f"onnx:{OWN_ONNX}", "inputs": OWN_INPUTS, "train": None}
ONNX_MODELS: dict[str, Any] = {MODEL: {**TINY, **OWN}}
ONNX_VARIANTS = ("cpu-onnxruntime-fp32", *VARIANTS[1:])
WORDS = {
    "cat": ["whiskers", "purrs", "meows", "claws", "kitten"],
    "dog": ["barks", "fetches", "bone", "puppy", "tail"],
}
# the jobs that decide, and those that report
RACE = {f"race_finalists/{MODEL}-cpu"}
REPORT = {"summarize/summarize", "render_report/render_report"}
SUMMARY = "reports/summary.json"
COMMON = ["the", "a", "old", "small", "big", "house", "garden"]
COMMON += ["runs", "sleeps", "in", "near", "with"]
# a job's log is artifacts/logs/{rule}/{wildcards}.log: its name is the job's
JOB = re.compile(r"^    log: artifacts/logs/(\S+)\.log\b", re.MULTILINE)


def builds_of(*variants: str) -> set[str]:
    """The jobs that build these variants of the model."""
    parts = [variant.split("-", 2) for variant in variants]
    return {f"build_{engine}/{MODEL}-{device}-{rest}" for device, engine, rest in parts}


def measurements_of(*variants: str) -> set[str]:
    """The jobs that measure these variants, decide and report."""
    kinds = ("latency", "accuracy")
    own = {f"measure_{kind}/{MODEL}-{variant}" for kind in kinds for variant in variants}
    return own | RACE | REPORT


def drawn(*graphs: str) -> set[str]:
    """The jobs that draw these graphs of the model."""
    return {f"describe_graph/{MODEL}-{graph}" for graph in graphs}


# Where the tests are about no number: as the fixture `short_rounds`
ROUNDS = 6
SHORT_ROUNDS = {
    "\nROUNDS = 24": f"\nROUNDS = {ROUNDS}",
    "BLOCK_S = 0.1": "BLOCK_S = 0.01",
    "WARM_UP_S = 1.0": "WARM_UP_S = 0.05",
}


class Project:
    """A working directory of the pipeline, and Snakemake's command line in it."""

    # of a run; that of everything takes minutes beside other load
    seconds = 1500

    def __init__(self, folder: Path, models: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.models = models or CONFIG["models"]

    def __truediv__(self, path: str) -> Path:
        return self.folder / path

    def configure(self, **changes: Any) -> None:
        """Write config/config.yaml: the tiny one with those top-level keys replaced."""
        document = {**deepcopy(CONFIG), "models": self.models, **changes}
        (self / "config/config.yaml").write_text(yaml.safe_dump(document, sort_keys=False))

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace the one place in the file where `old` is."""
        text = (self / path).read_text()
        assert text.count(old) == 1, f"{path} has {text.count(old)} times {old!r}"
        (self / path).write_text(text.replace(old, new))

    def rewrite(self, path: str, document: Any) -> None:
        """As if a job had written the JSON document so, and Snakemake sees no change."""
        status = (self / path).stat()
        written(self / path, document)
        os.utime(self / path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def command(self, *words: str) -> list[str]:
        """The command line of Snakemake with these words."""
        return [sys.executable, "-m", "snakemake", *self.options(*words)]

    def options(self, *words: str) -> list[str]:
        """These words, with a number of cores where no profile gives it."""
        return [*([] if "--profile" in words else ["--cores", "2"]), *words]

    def environment(self, **variables: str) -> dict[str, str]:
        """The environment of Snakemake: this Python's programs first, nothing of this pytest."""
        ours = ("PYTHONPATH", "PYTHONUNBUFFERED", "TIGHTROPE_ATTEMPTS")
        kept = {name: value for name, value in os.environ.items() if name not in ours}
        programs = Path(sys.executable).parent
        return {**kept, "PATH": f"{programs}:{os.environ['PATH']}", **variables}

    def snakemake(
        self, *words: str, cold: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Snakemake's answer, errors in the same stream as the rest.

        A `cold` one and each of its jobs is a Python of its own, as where a user starts it; others
        are forks of a process that has imported what they do.
        """
        if not cold:
            settings = (self.options(*words), self.folder, self.environment(**variables))
            return warm_snakemake.snakemake(*settings, seconds=self.seconds)
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env=self.environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=self.seconds,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Snakemake as the leader of a process group of its own, still running."""
        return subprocess.Popen(
            self.command(*words),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, **settings: Any) -> set[str]:
        """The jobs that were run, `{rule}/{wildcards}`; a run that fails fails the test."""
        return self.jobs(self.snakemake(*words, **settings))

    def plan(self, *words: str, **settings: Any) -> set[str]:
        """The jobs that would be run."""
        return self.run("--dry-run", "--verbose", *words, **settings)

    def jobs(self, done: subprocess.CompletedProcess[str]) -> set[str]:
        """The jobs of a Snakemake that must have gone well.

        A dry run names their logs in its output; of a run Snakemake's own log file has them.
        """
        assert done.returncode == 0, done.stdout
        told = done.stdout if "--dry-run" in done.args else self.snakemakes_log()
        jobs = set(JOB.findall(told))
        assert jobs or "Nothing to be done" in done.stdout, done.stdout
        return jobs

    def snakemakes_log(self) -> str:
        """What Snakemake wrote into the log file of its latest run."""
        return max((self / ".snakemake/log").iterdir()).read_text()

    def log(self, job: str) -> str:
        """What the job wrote."""
        return (self / f"artifacts/logs/{job}.log").read_text()

    def read(self, path: str) -> Any:
        """The JSON document of that path."""
        return json.loads((self / path).read_text())

    def results(self, model: str = MODEL) -> dict[str, Any]:
        """What the summary says of each variant of the model."""
        found = self.read(SUMMARY)["results"]
        return {one["variant"]: one for one in found if one["model"] == model}

    def statuses(self) -> dict[str, str]:
        """The status of each variant."""
        return {variant: one["status"] for variant, one in self.results().items()}

    def files(self) -> set[str]:
        """Every file outside .snakemake and Python's own caches."""
        return {
            path.relative_to(self.folder).as_posix()
            for path in self.folder.rglob("*")
            if path.is_file() and not {".snakemake", "__pycache__"} & set(path.parts)
        }

    def copy(self, folder: Path) -> "Project":
        """The same project elsewhere, modification times and Snakemake's metadata kept."""
        shutil.copytree(self.folder, folder, symlinks=True, copy_function=copy_file)
        return Project(folder, self.models)


def copy_file(source: str, target: str) -> None:
    """Copy a file; link one of bytecode or a digest, which is only ever replaced as a whole."""
    if Path(source).parent.name == "__pycache__":
        with suppress(OSError):
            os.link(source, target)
            return
    shutil.copy2(source, target)


def new_project(repository: Path, folder: Path) -> Project:
    """A tiny project in which nothing was run, made of the files of the repository."""
    folder.mkdir()
    shutil.copy2(repository / "Snakefile", folder)
    for name in ("rules", "scripts", "tools", "config", "profiles", "envs"):
        # what another process of the tests is about to rename
        ignored = shutil.ignore_patterns("*.part", "*.pyc.*")
        shutil.copytree(repository / name, folder / name, ignore=ignored)
    project = Project(folder)
    project.configure()
    for old, new in SHORT_ROUNDS.items():
        project.edit("scripts/tightrope/measure/rounds.py", old, new)
    write_texts(project / "texts.csv", seed=0)
    return project


def adapted(profile: str, values: Mapping[str, Any]) -> str:
    """The text of a profile with values in the place of those that are marked HERE."""
    for name, value in values.items():
        marked = rf"^(  {name}: )\S+( # HERE)"
        profile, count = re.subn(marked, rf"\g<1>{value}\2", profile, flags=re.M)
        assert count == 1, f"{count} times {name} with HERE"
    return profile


def write_own_onnx(project: Project, made: Project) -> None:
    """Give the project the ONNX file and tokenizer that another made, its inputs renamed."""
    model = onnx.load(made / f"artifacts/{MODEL}/model.onnx")
    for node in model.graph.node:
        node.input[:] = [OWN_INPUTS.get(name, name) for name in node.input]
    for value in model.graph.input:
        value.name = OWN_INPUTS[value.name]
    (project / OWN_ONNX).parent.mkdir()
    onnx.save(model, project / OWN_ONNX)
    tokenizer = f"artifacts/{MODEL}/checkpoint/tokenizer.json"
    shutil.copy2(made / tokenizer, (project / OWN_ONNX).parent)


def write_texts(path: Path, *, seed: int, count: int = 240) -> None:
    """A table of so many different short texts, each about a cat or a dog."""
    path.parent.mkdir(exist_ok=True)
    generator = random.Random(seed)
    rows: dict[str, str] = {}
    while len(rows) < count:
        label = ("cat", "dog")[len(rows) % 2]
        words = generator.choices(COMMON, k=generator.randint(3, 9))
        words += generator.choices(WORDS[label], k=2)
        generator.shuffle(words)
        rows.setdefault(" ".join(words), label)
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "label"), *rows.items()])

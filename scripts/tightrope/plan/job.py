"""What follows from the wildcards of a job."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tightrope.plan import hosts, pruning
from tightrope.plan.hosts import Document
from tightrope.plan.job_inputs import data_source
from tightrope.plan.location import Location
from tightrope.plan.plan import Plan
from tightrope.plan.shapes import is_of_images
from tightrope.variants import Variant, parse


@dataclass
class Job:
    """What a job is about: its wildcards, with the names that its rule adds, and what follows.

    `keys` is the entry of its model in `models`, empty for a job of no model.
    """

    config: Document
    plan: Plan
    location: Location
    workflow: Any
    names: dict[str, str]

    def __post_init__(self) -> None:
        self.model = self.names.get("model", "")
        self.keys: Document = self.config["models"].get(self.model, {})
        self.folder = f"artifacts/{self.model}"

    @cached_property
    def variant(self) -> Variant:
        """Return the variant, that of a build with the engine of its rule."""
        name = self.names.get("variant") or "{device}-{engine}-{rest}".format_map(self.names)
        return parse(name)

    @cached_property
    def place(self) -> str:
        """Return where it runs: the place of its variant, its device, or else of a training.

        A training with the device `auto` is on the GPU where variants for it are planned and it is
        usable here, or a host has it, or where only GPU variants are planned, as on the head node
        of a cluster: without the trained weights they would fail too.
        """
        if "variant" in self.names:
            return self.variant.place
        if "device" in self.names:
            return self.names["device"]
        asked = str((self.keys["train"] or self.keys.get("qat") or {"device": "cpu"})["device"])
        if asked != "auto":
            return asked
        machine = hosts.planned_on()
        ready = machine["host"]["gpu"] is not None and machine["packages"]["pytorch"] is None
        elsewhere = bool(self.config["hosts"]) or self.config["devices"] == ["cuda"]
        return "cuda" if hosts.uses_gpu(self.config) and (ready or elsewhere) else "cpu"

    @property
    def data(self) -> dict[str, Any]:
        """Return the arguments of `data_sources` for the data of its model."""
        return data_source(self.config, self.model)

    @property
    def baseline(self) -> Variant:
        """Return the baseline of its model at its place."""
        return parse(self.plan.baselines[self.model][self.place])

    @property
    def encoder(self) -> str:
        """Return the library that encodes the examples of its model."""
        return "pillow" if is_of_images(self.config, self.model) else "tokenizers"

    @property
    def calibration(self) -> tuple[str, str]:
        """Return the name of its calibration cache, and that of a repair or `auto`, else ""."""
        method, samples, *repair = self.names["calibration"].split("-")
        return f"{method}-{samples}", "".join(repair)

    @cached_property
    def structures(self) -> Document | None:
        """Return the engine that structures are timed with, None for a choice by parameters."""
        if table := self.names.get("structures"):
            return pruning.engine_of_table(self.config, self.model, table)
        return pruning.engine_of_choice(self.config, self.model)

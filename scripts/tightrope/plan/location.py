"""Where files are: below the prefix of a module, and here or in Snakemake's storage.

In storage, such as an object store in place of a shared file system, there are no folders, only
files that rules declare. So each rule declares what belongs to the files that it reads and writes:
the packs of folders, see `tightrope.artifacts.packs`.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from tightrope.artifacts.manifest import FOLDERS
from tightrope.artifacts.packs import pack_of, read_with
from tightrope.errors import ConfigError

# what begins the files that are never in storage
REPORT = "reports/summary."
# of engines it reads what their manifests say, not the files
WITHOUT_ENGINES = "summarize"


@dataclass(frozen=True)
class Location:
    """The folder of the project, and the prefix of all that is made, such as `sub/`.

    `stored` where that is kept in Snakemake's storage, and the user's files are not.

    As a `module` of another workflow this one shares the folder of the run: its importer's files,
    lock, terminal and hooks are none of its business.
    """

    project: str
    prefix: str = ""
    module: bool = False
    stored: bool = False

    @classmethod
    def of(cls, workflow: Any, project: str) -> Self:
        """Return the location of the workflow whose Snakefile is read.

        Raises ConfigError for a module with `replace_prefix`, which moves some files and not all.
        """
        modifier = workflow.modifier
        if modifier.path_modifier.modifies_prefixes:
            raise ConfigError("module: replace_prefix is not supported; use prefix")
        # of the module alone: `modify_path` also gives the place of a copy from storage
        prefix = str(modifier.path_modifier.replace_prefix("x")).removesuffix("x")
        module = not modifier.is_main_snakefile()
        return cls(project, prefix, module=module, stored=is_stored(workflow))

    @property
    def scripts(self) -> str:
        """Return the folder of the scripts.

        On its own it is relative, as Snakemake compares inputs by path, and the project may be
        moved. In a module it is absolute: Snakemake would put the prefix before it.
        """
        scripts = f"{self.project}/scripts"
        return str(Path(scripts).absolute()) if self.module else os.path.relpath(scripts)

    def made(self, path: Path | str) -> str:
        """Return where a file of `artifacts/` or `reports/` is."""
        return f"{self.prefix}{path}"

    def given(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return inputs of which the user's stay where they are.

        Those that are made here keep their path, to which Snakemake adds the prefix.
        """
        if not self.prefix and not self.stored:
            return inputs
        return {name: self.kept(paths) for name, paths in inputs.items()}

    def kept(self, paths: Any) -> Any:
        """Return a path, or a list of paths; a user's is absolute, and is not in storage."""
        if not isinstance(paths, str):
            return [self.kept(path) for path in paths]
        if Path(paths).parts[0] in FOLDERS:
            return paths
        path = str(Path(paths).absolute()) if self.prefix else paths
        if not self.stored:
            return path
        from snakemake.io import local

        return local(path)


def is_stored(workflow: Any) -> bool:
    """Return whether files are kept in storage unless they are marked `local`."""
    return workflow.storage_settings.default_storage_provider is not None


def require_storable(config: dict[str, Any], words: Sequence[str]) -> None:
    """Raise ConfigError for what does not work, or not yet, with files in storage.

    `words` are the command line, on which Snakemake takes each target for a file in storage.
    """
    if wanted := [word for word in words if word.startswith(REPORT)]:
        raise ConfigError(
            f"{wanted[0]}: with files in storage (--default-storage-provider) a target is a file "
            "there, and the report is here; give no target"
        )
    if len(config["hosts"]) > 1:
        raise ConfigError(
            f"config: hosts = {', '.join(config['hosts'])}: with files in storage "
            "(--default-storage-provider) jobs are not sent to the nodes of a host yet; leave one"
        )
    for name, model in config["models"].items():
        if model["distill"] and model["distill"]["unlabelled"]:
            raise ConfigError(
                f"config: models.{name}.distill.unlabelled: with files in storage "
                "(--default-storage-provider) a teacher's job does not get these files yet; leave "
                "it out, or run where all nodes share a file system"
            )


@contextmanager
def files_here(
    workflow: Any, paths: Iterable[str], largest: float = math.inf
) -> Iterator[list[Path]]:
    """Give the files at these paths, copies of those in storage, of at most `largest` bytes.

    Raises WorkflowError of Snakemake where the storage does not answer.
    """
    if not is_stored(workflow):
        yield [Path(path) for path in paths]
        return
    run = workflow.async_run
    objects = [object_at(workflow, path) for path in dict.fromkeys(paths)]
    existing = [one for one in objects if run(one.managed_exists())]
    small = [one for one in existing if run(one.managed_size()) <= largest]
    for one in small:
        run(one.managed_retrieve())
    yield [one.local_path() for one in small]
    for one in small:
        one.local_path().unlink(missing_ok=True)


def missing_of(workflow: Any, paths: Iterable[str]) -> set[str]:
    """Return those of the paths at which there is no file, as Snakemake names them."""
    if not is_stored(workflow):
        return {path for path in paths if not Path(path).exists()}
    objects = [object_at(workflow, path) for path in paths]
    exists = workflow.async_run
    return {str(one.local_path()) for one in objects if not exists(one.managed_exists())}


def object_at(workflow: Any, path: str) -> Any:
    """Return the storage object of a path as rules declare it."""
    prefix = workflow.storage_settings.default_storage_prefix.rstrip("/")
    return workflow.storage_registry.default_storage_provider.object(f"{prefix}/{path}")


def declare_packs(workflow: Any) -> None:
    """Declare the packs of each rule, after all rules; without storage there are none."""
    if not is_stored(workflow):
        return
    prefix = workflow.storage_settings.default_storage_prefix
    for rule in workflow.rules:
        written = [declared(path, prefix) for path in rule.output if not is_local(path)]
        rule.set_output(*filter(None, map(pack_of, written)))
        engines = rule.name != WITHOUT_ENGINES
        rule.set_input(partial(packs_of_inputs, [*rule.input], prefix, engines))


def packs_of_inputs(inputs: list[Any], prefix: str, engines: bool, wildcards: Any) -> list[str]:
    """Return the packs of a rule's inputs, paths or functions, with those of engines or without."""
    paths = [path for one in inputs for path in paths_of(one, prefix, wildcards)]
    packs = dict.fromkeys(pack for path in paths if (pack := read_with(path)))
    return [pack for pack in packs if engines or "/engines/" not in pack]


def is_local(path: Any) -> bool:
    """Return whether a path is marked as one that is not kept in storage."""
    return "local" in getattr(path, "flags", {})


def paths_of(given: Any, prefix: str, wildcards: Any) -> Iterator[str]:
    """Yield what is in storage of an input of a rule, which may be a function of the wildcards."""
    from snakemake.io import apply_wildcards, is_callable

    # as Snakemake does: a function that is marked `unpack` is a string with a function
    function = given if callable(given) else is_callable(given) and given._file.callable
    if not function:
        if not is_local(given):
            yield apply_wildcards(declared(given, prefix), wildcards)
        return
    found = function(wildcards)
    values = found.values() if isinstance(found, dict) else [found]
    for value in values:
        paths = [value] if isinstance(value, str) else value
        yield from (path for path in paths if not is_local(path))


def declared(path: Any, prefix: str) -> str:
    """Return a path as the rule declares it, without the place where storage keeps it."""
    flags = getattr(path, "flags", {})
    if "storage_object" not in flags:
        return str(path)
    return str(flags["storage_object"].query).removeprefix(f"{prefix.rstrip('/')}/")

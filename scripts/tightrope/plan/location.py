"""Where this workflow is: on its own, or a module of another one, whose files may have a prefix."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tightrope.artifacts.paths import FOLDERS
from tightrope.errors import ConfigError
from tightrope.plan.stored import as_local, is_stored


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

    def given(
        self, function: Callable[..., Any], config: dict[str, Any], wildcards: Any
    ) -> dict[str, Any] | list[str]:
        """Return the inputs that `function` returns, so that the user's stay where they are.

        Those that are made here keep their path, to which Snakemake adds the prefix.
        """
        found = function(config, wildcards)
        if not self.prefix and not self.stored:
            return found
        if isinstance(found, dict):
            return {name: self.kept(paths) for name, paths in found.items()}
        return [self.kept(path) for path in found]

    def kept(self, paths: Any) -> Any:
        """Return a path, or a list of paths; a user's is absolute, and is not in storage."""
        if not isinstance(paths, str):
            return [self.kept(path) for path in paths]
        if Path(paths).parts[0] in FOLDERS:
            return paths
        path = str(Path(paths).absolute()) if self.prefix else paths
        return as_local(path) if self.stored else path


def location_or_exit(workflow: Any, project: str) -> Location:
    """Return the location of the workflow; end the process with one line on an error."""
    try:
        return Location.of(workflow, project)
    except ConfigError as error:
        sys.exit(str(error))

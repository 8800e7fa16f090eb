"""Where this workflow is: on its own, or a module of another one, whose files may have a prefix."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tightrope.artifacts.seals import FOLDERS
from tightrope.errors import ConfigError


@dataclass(frozen=True)
class Location:
    """The folder of the project, and the prefix of all that is made, such as `sub/`.

    As a `module` of another workflow this one shares the folder of the run: its importer's files,
    lock, terminal and hooks are none of its business.
    """

    project: str
    prefix: str = ""
    module: bool = False

    @classmethod
    def of(cls, workflow: Any, project: str) -> Self:
        """Return the location of the workflow whose Snakefile is read.

        Raises ConfigError for a module with `replace_prefix`, which moves some files and not all.
        """
        modifier = workflow.modifier
        if modifier.path_modifier.modifies_prefixes:
            raise ConfigError("module: replace_prefix is not supported; use prefix")
        prefix = str(modifier.modify_path("x")).removesuffix("x")
        return cls(project, prefix, module=not modifier.is_main_snakefile())

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
        """Return the inputs that `function` returns, so that no prefix is put before the user's.

        Those that are made here keep their path, to which Snakemake adds the prefix.
        """
        found = function(config, wildcards)
        if not self.prefix:
            return found
        if isinstance(found, dict):
            return {name: self.absolute(paths) for name, paths in found.items()}
        return [self.absolute(path) for path in found]

    def absolute(self, paths: Any) -> Any:
        """Return a path, or a list of paths, absolute unless it is made here."""
        if not isinstance(paths, str):
            return [self.absolute(path) for path in paths]
        return paths if Path(paths).parts[0] in FOLDERS else str(Path(paths).absolute())


def location_or_exit(workflow: Any, project: str) -> Location:
    """Return the location of the workflow; end the process with one line on an error."""
    try:
        return Location.of(workflow, project)
    except ConfigError as error:
        sys.exit(str(error))

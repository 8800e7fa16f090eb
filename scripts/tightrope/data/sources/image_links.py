"""Where links in folders of images may lead."""

from dataclasses import dataclass
from pathlib import Path

from tightrope.errors import ConfigError, TightropeError
from tightrope.sources.patterns import fixed_part, home_expanded


@dataclass(frozen=True)
class Links:
    """The folders to which links may lead; data stores such as DVC consist of links.

    They are the folder that the configuration names, the folder of the run, and what `images` of
    the model names. Elsewhere a link of another's making, as an archive may hold it, could show any
    image of this machine.
    """

    named: Path
    folders: tuple[Path, ...]

    @classmethod
    def of(cls, pattern: str, images: str | None) -> "Links":
        """Return the folders for a pattern; raise ConfigError where `images` is no folder."""
        named = fixed_part(pattern)
        folders = [named, Path.cwd()]
        if images is not None:
            folders.append(home_expanded(f"images = {images}", images))
            if not folders[-1].is_dir():
                raise ConfigError(
                    f"images = {images}: no folder that links could lead to; only tables and links "
                    "name images elsewhere"
                )
        return cls(named, tuple(folder.resolve() for folder in folders))

    def lead_elsewhere(self, path: Path) -> bool:
        """Return whether a path is a link to a place outside of these folders."""
        return self.target(path) is not None

    def require_inside(self, path: Path) -> None:
        """Raise TightropeError where a path is a link to a place outside of these folders."""
        target = self.target(path)
        if target is not None:
            raise TightropeError(
                f"{path}: a link to {target}, which is outside of {self.named} and of the folder "
                "of the run; copy what it leads to, or set `images` of the model to the folder "
                "that links may lead to"
            )

    def target(self, path: Path) -> Path | None:
        """Return where a link outside of these folders leads; None for any other path."""
        if path == self.named or not path.is_symlink():
            return None
        try:
            target = path.resolve()
        except (OSError, RuntimeError):  # a link to itself, which cannot be read
            return None
        return None if any(map(target.is_relative_to, self.folders)) else target

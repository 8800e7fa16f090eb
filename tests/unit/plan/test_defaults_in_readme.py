"""The README lists the keys of config/config.yaml whose values are not the defaults."""

import re
from pathlib import Path
from typing import Any

import yaml
from tightrope.plan.config import checked

ROW = re.compile(r"^\| `([\w.]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """The values of all keys by dotted name; lists count as values."""
    if not isinstance(value, dict):
        return {path: value}
    inner = (leaves(one, f"{path}.{key}" if path else key) for key, one in value.items())
    return {name: one for part in inner for name, one in part.items()}


def words(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else "none" if value is None else str(value)


def test_the_readme_lists_every_default_that_the_embedded_configuration_changes(
    repository: Path,
) -> None:
    schema = repository / "config/schema.yaml"
    embedded = yaml.safe_load((repository / "config/config.yaml").read_text())
    model = {"checkpoint": "scratch:bert", "data": "random"}
    models = {"models": {"mine": model}}
    ours = leaves(checked({**embedded, **models}, schema))
    theirs = leaves(checked(models, schema))
    different = {
        (name, words(theirs.get(name)), words(ours[name]))
        for name in ours
        if ours[name] != theirs.get(name)
    }
    assert different
    readme = (repository / "README.md").read_text()
    table = readme[readme.index("| key | default | config/config.yaml |") :]
    assert set(ROW.findall(table[: table.index("\n\n")])) == different

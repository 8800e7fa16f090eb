"""Models that start from another model of the configuration."""

from typing import Any

from tightrope.errors import ConfigError, nearest
from tightrope.variants import is_onnx

Document = dict[str, Any]
FROM, KIND = "from", "model"
# keys that a model takes from its parent unless it has them itself
INHERITED = ("task", "data", "images", "columns", "splits", "max_sequence", "seed")


def with_parents(config: Document) -> Document:
    """Return the configuration with what models inherit from those that they start `from`.

    Their checkpoint is `model:PARENT`. Raises ConfigError for an unknown parent, a parent
    that is an ONNX file, a cycle, and a model with a checkpoint of its own besides.
    """
    models = config.get("models")
    if not isinstance(models, dict):
        return config  # the schema says what is wrong
    return {**config, "models": {name: derived(name, models) for name in models}}


def derived(name: str, models: Document, children: tuple[str, ...] = ()) -> Any:
    """Return a model with what it inherits; `children` are those that start from it."""
    model = models[name]
    if not isinstance(model, dict) or model.get(FROM) is None:
        require_own_checkpoint(name, model)
        return model
    parent, place = model[FROM], f"config: models.{name}.{FROM} = {model[FROM]}"
    if parent not in models:
        names = [one for one in models if one != name]
        raise ConfigError(f"{place}: no model of that name{nearest(str(parent), names)}")
    if parent in (*children, name):
        cycle = (
            " from ".join((*children[children.index(parent) :], name, parent)) if children else ""
        )
        raise ConfigError(f"{place}: a model cannot start from itself ({cycle or name})")
    if "checkpoint" in model:
        raise ConfigError(f"{place}: it starts from that model's checkpoint; remove checkpoint")
    above = derived(parent, models, (*children, name))
    if not isinstance(above, dict):
        return model
    if is_onnx(str(above.get("checkpoint"))):
        raise ConfigError(f"{place}: that model is an ONNX file; start from its checkpoint")
    taken = {key: above[key] for key in INHERITED if key in above}
    return {**taken, **model, "checkpoint": f"{KIND}:{parent}"}


def require_own_checkpoint(name: str, model: Any) -> None:
    """Raise ConfigError where a model names another one as its checkpoint, not with `from`."""
    kind, _, parent = str(model.get("checkpoint") if isinstance(model, dict) else "").partition(":")
    if kind == KIND:
        raise ConfigError(
            f"config: models.{name}.checkpoint = {kind}:{parent}: write {FROM}: {parent} in its "
            "place, which also takes that model's data"
        )

"""What a model takes from another one, which it starts from or learns from."""

from typing import Any

from tightrope.config.schema import Document
from tightrope.errors import ConfigError, nearest
from tightrope.variants import is_onnx

FROM, TEACHER, KIND = "from", "distill.from", "model"
# keys that a model takes from its parent, else from its teacher, unless it has them itself
INHERITED = ("task", "data", "images", "columns", "splits", "max_sequence", "seed")


def with_parents(config: Document) -> Document:
    """Return the configuration with what models inherit from those that they start `from`.

    Their checkpoint is `model:PARENT`. A model that learns from another one without starting from
    it has the data of its teacher. Raises ConfigError for an unknown parent or teacher, one that
    is an ONNX file, a cycle, and a model with a checkpoint of its own besides.
    """
    models = config.get("models")
    if not isinstance(models, dict):
        return config  # the schema says what is wrong
    return {**config, "models": {name: derived(name, models) for name in models}}


def ancestors(model: Any) -> dict[str, Any]:
    """Return the models that a model is made from, by the key that names them."""
    if not isinstance(model, dict):
        return {}
    distill = model.get("distill")
    teacher = distill.get(FROM) if isinstance(distill, dict) else None
    found = {FROM: model.get(FROM), TEACHER: teacher}
    return {key: name for key, name in found.items() if name is not None}


def derived(name: str, models: Document, children: tuple[str, ...] = ()) -> Any:
    """Return a model with what it inherits; `children` are those that are made from it."""
    model, above = models[name], {}
    for key, parent in ancestors(model).items():
        require_parent(name, key, parent, models, (*children, name))
        above[key] = derived(parent, models, (*children, name))
        if isinstance(above[key], dict) and is_onnx(str(above[key].get("checkpoint"))):
            raise ConfigError(
                f"config: models.{name}.{key} = {parent}: that model is an ONNX file; start from "
                "its checkpoint"
            )
    kind, _, parent = str(model.get("checkpoint") if isinstance(model, dict) else "").partition(":")
    if kind == KIND and FROM not in above:
        raise ConfigError(
            f"config: models.{name}.checkpoint = {kind}:{parent}: write {FROM}: {parent} in its "
            "place, which also takes that model's data"
        )
    source = above.get(FROM, above.get(TEACHER))
    if not isinstance(source, dict):
        return model
    taken = {key: source[key] for key in INHERITED if key in source}
    if FROM in above:
        return {**taken, **model, "checkpoint": f"{KIND}:{model[FROM]}"}
    return model if "data" in model else {**taken, **model}


def require_parent(
    name: str, key: str, parent: Any, models: Document, children: tuple[str, ...]
) -> None:
    """Raise ConfigError unless `parent` is a model, and none of `children`, made from it."""
    place = f"config: models.{name}.{key} = {parent}"
    if not isinstance(parent, str):
        raise ConfigError(f"{place}: not the name of a model")
    if parent not in models:
        names = [one for one in models if one != name]
        raise ConfigError(f"{place}: no model of that name{nearest(str(parent), names)}")
    if parent in children:
        cycle = " from ".join((*children[children.index(parent) :], parent))
        cycle = cycle if len(children) > 1 else name
        raise ConfigError(f"{place}: a model cannot start from itself ({cycle})")
    if key == FROM and "checkpoint" in models[name]:
        raise ConfigError(f"{place}: it starts from that model's checkpoint; remove checkpoint")

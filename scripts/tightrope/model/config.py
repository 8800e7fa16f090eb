"""Where the config.json of a checkpoint names its activation."""

from pathlib import Path

from tightrope.artifacts.files import read_json

# what Tightrope writes: hidden_act is of transformers, which does not know all of them
FIELD = "tightrope_activation"
FIELDS = (FIELD, "hidden_act", "activation", "activation_function")


def activation_of(config: Path | str) -> str | None:
    """The activation that the config.json names; None where it names none, or there is no such."""
    if not Path(config).is_file():
        return None
    document = read_json(config)
    named = (document.get(field) for field in FIELDS)
    return next((name for name in named if isinstance(name, str)), None)

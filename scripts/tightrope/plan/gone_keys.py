"""Keys that an earlier version had, and what takes their place."""

from fnmatch import fnmatchcase

# by the key, in which * is the name of a model
GONE = {
    "builds": "builds of one engine differ for TVM alone; latency: {loads: 2} loads each twice",
    "cascades": 'choose one model by the table "Smaller models" of the report',
    "models.*.compress": "say prune: {target: 2x}, a model for each target (docs/pruning.md)",
}


def instead_of(key: str) -> str | None:
    """Return what to do in place of a key that is gone, None for any other key."""
    return next((words for gone, words in GONE.items() if fnmatchcase(key, gone)), None)

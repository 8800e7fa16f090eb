"""Errors that a person is meant to read: one line with the thing, the reason and the remedy."""


class TightropeError(Exception):
    """An expected failure; a job prints its one line and no traceback."""


class ConfigError(TightropeError):
    """The configuration asks for something that cannot be."""


class ArtifactError(TightropeError):
    """A file of a former step is missing, truncated or not the one that was written."""


class StorageError(TightropeError):
    """The disk is full or a folder cannot be written; no property of a variant."""

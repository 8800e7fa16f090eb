"""First paragraphs of docstrings of installed packages, one class per package."""

import ast
import inspect
import os
import random
import re
import warnings
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from tightrope.data.splits import Material, fingerprint
from tightrope.errors import ConfigError
from tightrope.jobs.child import spread
from tightrope.sources.local import package_folder, package_version

SHORTEST, LONGEST = 30, 400
# Oversampling factor, because texts that duplicate another package's are dropped later.
SPARE = 1.03
MASK = "package"
# Other names of a package.
ALIASES = {
    **dict.fromkeys(
        ("datasets", "huggingface_hub", "transformers"), ("hugging face", "huggingface")
    ),
    **{"networkx": ("nx",), "numpy": ("np",), "onnxruntime": ("ort",), "openvino": ("ov",)},
    **{"pandas": ("pd",), "pyarrow": ("pa",), "sklearn": ("scikit-learn", "scikits")},
    **{"sqlalchemy": ("sa",), "sympy": ("sp",), "torch": ("pytorch",)},
}
SKIPPED_FOLDERS = {"test", "tests", "testing", "_vendor", "vendored"}
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def local_files(source: str, location: str, **_settings: Any) -> list[Path]:
    """Return no files, versions identify the packages; raise ConfigError if one is missing."""
    names = package_names(location)
    if len(names) < 2 or len(set(names)) < len(names):
        raise ConfigError(f"{source}: docstrings needs two or more different packages")
    for name in names:
        package_folder(source, name)
    return []


def libraries(_source: str, location: str, **_settings: Any) -> dict[str, str | None]:
    """Return the versions of the packages."""
    return {name: package_version(name) for name in package_names(location)}


def read(source: str, location: str, *, texts: int | None, seed: int, **_settings: Any) -> Material:
    """Return at least `texts` texts in total, equally many per package; None reads every file.

    The files of a package are read in an order drawn from `seed`, until its share is full. Raises
    ConfigError for a package that is not installed; none is imported.
    """
    packages = package_names(location)
    share = None if texts is None else int(-(-texts // len(packages)) * SPARE) + 1
    folders = [package_folder(source, name) for name in packages]
    read_package = partial(texts_of_package, mask=masking_pattern(packages), seed=seed, share=share)
    # parsing dominates the time, and packages are independent
    texts_by_package = spread(read_package, folders, processes=len(os.sched_getaffinity(0)))
    rows = [(text, label) for label, texts in enumerate(texts_by_package) for text in texts]
    return Material(labels=packages, train=rows)


def read_unlabelled(source: str, location: str, *, seed: int, **_settings: Any) -> list[str]:
    """Return all texts of the packages."""
    return [text for text, _ in read(source, location, texts=None, seed=seed).train]


def package_names(location: str) -> list[str]:
    """Split a comma-separated list into names, in the given order."""
    return [name.strip() for name in location.split(",") if name.strip()]


def texts_of_package(
    folder: Path, *, mask: re.Pattern[str], seed: int, share: int | None
) -> list[str]:
    """Return the first `share` distinct texts of the package, masked; all for None.

    Its .py files without tests are read in an order drawn from `seed`.
    """
    texts: dict[str, str] = {}
    names = sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if not SKIPPED_FOLDERS.intersection(path.relative_to(folder).parts)
    )
    random.Random(f"{seed} {folder.name}").shuffle(names)
    for docstring in chain.from_iterable(docstrings(folder / name) for name in names):
        text = mask.sub(MASK, first_paragraph(docstring))
        if SHORTEST <= len(text) <= LONGEST:
            texts.setdefault(fingerprint(text), text)
            if len(texts) == share:
                break
    return [*texts.values()]


def docstrings(file: Path) -> list[str]:
    """Return every docstring of a source file; none if it does not parse (a template, say)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return []
    nodes = (node for node in ast.walk(tree) if isinstance(node, Definition))
    return [text for text in map(ast.get_docstring, nodes) if text]


def first_paragraph(docstring: str) -> str:
    """Return the text up to the first blank line, as a single line."""
    return " ".join(inspect.cleandoc(docstring).split("\n\n")[0].split())


def masking_pattern(packages: list[str]) -> re.Pattern[str]:
    """Return a regex of package names in any case: long ones anywhere, short ones as a word."""
    names = {alias for name in packages for alias in (name, *ALIASES.get(name, ()))}
    words = [
        re.escape(name) if len(name) > 3 else rf"(?<![^\W_]){re.escape(name)}(?![^\W_])"
        for name in sorted(names, key=lambda name: (-len(name), name))
    ]
    return re.compile("|".join(words), re.IGNORECASE)

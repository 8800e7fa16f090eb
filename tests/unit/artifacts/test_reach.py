"""The digest of a script changes with every definition that it can reach, and with no other."""

import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
import tightrope
from programs import printed_in
from tightrope.artifacts.provenance import code_digest, library_versions, read_module
from tightrope.errors import TightropeError

SCRIPT = "from tightrope.near import work\nwork()\n"
NEAR = '''"""Near."""

import json
from tightrope import far
from tightrope import other as unused
from tightrope.types import Kind


def work(kind: "Kind | None" = None, hidden=0):
    """Work."""
    from tightrope.later import late
    hidden = [listed for listed in (late(), LIMIT)]
    return json.dumps(far.VALUE), hidden


def idle():
    return unused.other()


LIMIT = 1
LIMIT += 1


def hidden():
    return listed()


def listed():
    return 1
'''
FILES = {
    "script.py": SCRIPT,
    "tightrope/__init__.py": "import sys\n\nsys.flag = 1\n",
    "tightrope/near.py": NEAR,
    "tightrope/far.py": "from tightrope.deep.deepest import VALUE\n",
    "tightrope/deep/__init__.py": "",
    "tightrope/deep/deepest.py": "SEED = 1\nVALUE, REST = SEED, 2\n\n\n"
    "def other():\n    return 1\n",
    "tightrope/later.py": "def late():\n    return 1\n",
    "tightrope/other.py": "print('imported')\n\n\ndef other():\n    return 1\n",
    "tightrope/types.py": "class Kind:\n    size: int\n    'In bytes.'\n\n"
    "    def method(self):\n        return 1\n",
}
Digest = Callable[..., str]


@pytest.fixture
def digest(tmp_path: Path) -> Digest:
    """From changes (file, old text, new text) to the digest, each time in a folder of its own."""
    folders = iter(range(100))

    def digest(*changes: tuple[str, str, str], entries: tuple[str, ...] = ()) -> str:
        files = dict(FILES)
        for name, old, new in changes:
            text = files.setdefault(name, "")
            assert old in text
            files[name] = text.replace(old, new, 1) if old else text + new
        root = tmp_path / str(next(folders))
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return code_digest(root, "script.py", *entries)

    return digest


@pytest.mark.parametrize(
    "change",
    [
        ("script.py", "", "# a comment\n"),
        ("script.py", "work()", "work(\n)  # laid out"),
        ("tightrope/near.py", '"""Work."""', '"""Play."""'),
        ("tightrope/near.py", "return unused.other()", "return 2"),
        ("tightrope/types.py", "In bytes.", "In pages."),
        # arguments and local names hide functions of the same name
        ("tightrope/near.py", "return listed()", "return 3"),
        ("tightrope/near.py", "def listed():\n    return 1", "def listed():\n    return 2"),
        ("tightrope/deep/deepest.py", "def other():\n    return 1", "def other():\n    return 2"),
        ("tightrope/other.py", "return 1", "return 2"),
        ("tightrope/unrelated.py", "", "VALUE = 2\n"),
        ("tightrope/near.py", "import json", "import json, os"),
    ],
    ids=str,
)
def test_what_a_script_cannot_reach_changes_no_digest(digest, change) -> None:
    assert digest(change) == digest()


@pytest.mark.parametrize(
    "change",
    [
        ("script.py", "", "work()\n"),
        ("tightrope/near.py", "far.VALUE", "far.VALUE + 1"),
        ("tightrope/near.py", "far.VALUE", "far.REST"),
        ("tightrope/near.py", "def work", "async def work"),
        ("tightrope/near.py", "LIMIT += 1", "LIMIT += 2"),
        ("tightrope/deep/deepest.py", "SEED = 1", "SEED = 2"),
        ("tightrope/deep/deepest.py", "SEED, 2", "2, SEED"),
        ("tightrope/later.py", "return 1", "return 2"),
        # a class counts as a whole, also where an annotation in quotes names it
        ("tightrope/types.py", "return 1", "return 2"),
        # what a module does when it is imported
        ("tightrope/other.py", "imported", "changed"),
        ("tightrope/__init__.py", "sys.flag = 1", "sys.flag = 2"),
        # a module of the project in the place of another library's
        ("json.py", "", "def dumps(x):\n    return str(x)\n"),
    ],
    ids=str,
)
def test_what_a_script_can_reach_changes_its_digest(digest, change) -> None:
    assert digest(change) != digest()


@pytest.mark.parametrize("place", ["tightrope/deep/moved.py", "tightrope/moved.py"])
def test_a_definition_that_moves_to_another_file_changes_no_digest(digest, place) -> None:
    text, module = FILES["tightrope/later.py"], place.removesuffix(".py").replace("/", ".")
    # what uses it names its new place, or its old place imports it
    near = ("tightrope/near.py", "from tightrope.later", f"from {module}")
    old = ("tightrope/later.py", text, "")
    imported = ("tightrope/later.py", text, f"from {module} import late\n")
    for changes in ((old, near), (imported,)):
        assert digest((place, "", text), *changes) == digest()


@pytest.mark.parametrize(
    "line",
    [
        "import tightrope.other\ntightrope.other.other()",
        "from tightrope import other\nother.other()",
        "from tightrope import other\nprint(other)",
        "from tightrope.other import other\nother()",
        "def later():\n    from tightrope.other import other\n    return other",
    ],
)
def test_every_way_to_use_what_is_imported_is_followed(digest: Digest, line: str) -> None:
    used = ("script.py", "", f"{line}\n")
    assert digest(used, ("tightrope/other.py", "return 1", "return 2")) != digest(used)


def test_a_relative_import_is_an_error_that_names_its_line(digest: Digest) -> None:
    for line in ("from . import far", "from .far import VALUE"):
        with pytest.raises(TightropeError, match=r"near\.py:3: relative import; write the full"):
            digest(("tightrope/near.py", "import json", line))


@pytest.mark.parametrize("harm", ["{", "[]", "{}", '{"key": 1}'])
def test_what_is_kept_beside_the_bytecode_is_used_only_for_the_same_text(tmp_path, harm) -> None:
    path = tmp_path / "script.py"
    path.write_text("ONE = 1\n")
    first = read_module(path, "script")
    (kept,) = (tmp_path / "__pycache__").glob("script.*.reach.json")
    for text in (kept.read_text().replace("ONE", "TWO"), harm):
        kept.write_text(text)
        assert ("TWO" in read_module(path, "script").digests) == ("TWO" in text)
    path.write_text("ONE = 1  # a comment\n")
    assert read_module(path, "script") == first
    # nor is there need of a place for it
    shutil.rmtree(kept.parent)
    kept.parent.write_text("a file where the folder would be")
    assert read_module(path, "script") == first


def test_the_package_for_a_gpu_stands_in_for_the_one_of_a_cpu(tmp_path: Path) -> None:
    facts = tmp_path / "onnxruntime_gpu-9.9.9.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: 9.9.9\n"
    )
    words = (
        "from tightrope.artifacts.provenance import library_versions as found; "
        "print(found('onnxruntime', 'a'))"
    )
    # without the packages of the environment
    path = f"{Path(tightrope.__file__).parents[1]}:{tmp_path}"
    printed = printed_in(tmp_path, "-S", "-c", words, PYTHONPATH=path)
    assert printed == "{'onnxruntime': '9.9.9', 'a': None}\n"
    assert library_versions("onnxruntime") == {"onnxruntime": version("onnxruntime")}

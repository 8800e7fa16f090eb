import subprocess
import sys
from pathlib import Path

import pytest
import tightrope
from tightrope.artifacts.provenance import code_digest, library_versions, syntax
from tightrope.errors import TightropeError

SCRIPT = "from package.near import work\nwork()\n"
FILES = {
    "script.py": SCRIPT,
    "package/__init__.py": "",
    "package/near.py": (
        '"""Near."""\n\nimport json\nfrom package import far\n\n\n'
        'def work():\n    """Work."""\n    return json.dumps(far.VALUE)\n'
    ),
    "package/far.py": "from package.deep.deepest import VALUE\n",
    "package/deep/__init__.py": "",
    "package/deep/deepest.py": "VALUE = 1\n",
    "package/unrelated.py": "VALUE = 1\n",
}


@pytest.fixture
def digest(tmp_path: Path):
    """A function from changed files to the digest, each time in a folder of its own."""
    folders = iter(range(100))

    def digest(changes: dict[str, str | None] | None = None, *sources: str) -> str:
        root = tmp_path / str(next(folders))
        for name, text in {**FILES, **(changes or {})}.items():
            if text is not None:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
        return code_digest(root, "script.py", *sources)

    return digest


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"script.py": "# a comment\n" + SCRIPT},
        {"script.py": '"""A docstring."""\n\n' + SCRIPT},
        {"script.py": SCRIPT.replace("work()", "work(\n)  # laid out")},
        {"package/near.py": FILES["package/near.py"].replace('"""Work."""', '"""Play."""')},
        {"package/near.py": FILES["package/near.py"].replace("    ", "  ")},
        {"package/unrelated.py": "VALUE = 2\n"},
        {"package/unrelated.py": None},
        {"unrelated_script.py": "1\n"},
        {"package/deep/page.css": "a {}"},
    ],
)
def test_what_changes_no_result_changes_no_digest(digest, changes: dict[str, str]) -> None:
    assert digest(changes) == digest()


@pytest.mark.parametrize(
    "changes",
    [
        {"script.py": SCRIPT + "work()\n"},
        {"package/near.py": FILES["package/near.py"].replace("far.VALUE", "far.VALUE + 1")},
        {"package/far.py": FILES["package/far.py"] + "VALUE += 1\n"},
        {"package/deep/deepest.py": "VALUE = 2\n"},
        {"package/__init__.py": "import os\n"},
        {"package/deep/__init__.py": "A = 1\n"},
        {"package/deep/deepest.py": None},
        # a module of the project that takes the place of one from elsewhere
        {"json.py": "def dumps(x):\n    return str(x)\n"},
        {"package/near.py": FILES["package/near.py"].replace("def work", "async def work")},
        {"package/near.py": FILES["package/near.py"].replace("json.dumps(", "'text' + str(")},
    ],
)
def test_a_change_two_imports_deep_changes_the_digest(digest, changes: dict[str, str]) -> None:
    assert digest(changes) != digest()


@pytest.mark.parametrize(
    "line",
    [
        "import package.unrelated",
        "import package.unrelated as other",
        "from package import unrelated",
        "from package.unrelated import VALUE",
        "def later():\n    from package.unrelated import VALUE\n    return VALUE",
        "if work:\n    import package.unrelated",
    ],
)
def test_every_way_to_import_is_followed(digest, line: str) -> None:
    script = f"{SCRIPT}{line}\n"
    before = digest({"script.py": script})
    assert digest({"script.py": script, "package/unrelated.py": "VALUE = 2\n"}) != before


def test_a_module_named_beside_the_script_is_part_of_the_digest(digest) -> None:
    changed = {"package/unrelated.py": "VALUE = 2\n"}
    assert digest(None, "package/unrelated.py") != digest()
    assert digest(None, "package/unrelated.py") != digest(changed, "package/unrelated.py")


def test_text_that_is_no_docstring_counts(digest) -> None:
    text = FILES["package/near.py"].replace("json.dumps(far.VALUE)", "'a'")
    assert digest({"package/near.py": text}) != digest(
        {"package/near.py": text.replace("'a'", "'b'")}
    )


def test_circular_imports_end(digest) -> None:
    assert digest({"package/far.py": "import package.near\nVALUE = 1\n"}) != digest()


@pytest.mark.parametrize("line", ["from . import far", "from .far import VALUE"])
def test_a_relative_import_is_an_error_that_names_its_line(digest, line: str) -> None:
    with pytest.raises(TightropeError, match=r"near\.py:2: relative import; write the full"):
        digest({"package/near.py": f"import os\n{line}\n"})


@pytest.mark.parametrize("harm", ["{", "[]", "{}", '{"text_sha256": 1}'])
def test_a_kept_digest_is_used_only_where_it_is_whole_and_of_the_same_text(
    tmp_path: Path, harm: str
) -> None:
    path = tmp_path / "script.py"
    path.write_text("import json\n")
    syntax.cache_clear()
    first = syntax(path)
    (kept,) = (tmp_path / "__pycache__").glob("script.*.syntax.json")
    kept.write_text(kept.read_text().replace("json", "other"))
    syntax.cache_clear()
    assert syntax(path) == (first[0], ("other",))
    path.write_text("import json  # a comment\n")
    syntax.cache_clear()
    assert syntax(path) == first
    kept.write_text(harm)
    syntax.cache_clear()
    assert syntax(path) == first


def test_digests_need_no_place_to_be_kept_in(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("import json\n")
    (tmp_path / "__pycache__").write_text("a file where the folder would be")
    syntax.cache_clear()
    assert syntax(path)[1] == ("json",)


def test_every_script_of_the_project_has_a_digest_of_its_own(repository: Path) -> None:
    root = repository / "scripts"
    scripts = sorted(path.name for path in root.glob("*.py"))
    digests = {script: code_digest(root, script) for script in scripts}
    assert len(scripts) > 10
    assert len(set(digests.values())) == len(scripts)


def test_versions_are_those_installed_and_none_for_what_is_not() -> None:
    import onnxruntime

    found = library_versions("onnxruntime", "no-such-library-of-tightrope")
    assert found == {"onnxruntime": onnxruntime.__version__, "no-such-library-of-tightrope": None}


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
    command = [sys.executable, "-S", "-c", words]
    path = f"{Path(tightrope.__file__).parents[1]}:{tmp_path}"
    done = subprocess.run(command, env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.stdout.strip() == "{'onnxruntime': '9.9.9', 'a': None}", done.stderr

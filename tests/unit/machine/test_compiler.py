import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tightrope.machine.compiler import missing_compiler

# in a Python whose headers and libraries lie elsewhere
ASK = "from tightrope.machine.compiler import missing_compiler; print(missing_compiler())"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH, empty; CXX is not set."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)
    return folder


@pytest.fixture(autouse=True)
def headers() -> None:
    """The Python of the tests has its headers, or the compiler alone would not be found missing."""
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        pytest.skip("this Python has no headers")


def put_program(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_no_compiler_in_reach_is_said_with_the_remedy(programs: Path) -> None:
    reason = missing_compiler()
    assert reason is not None
    assert reason.startswith("no C++ compiler: ")
    assert "apt-get install g++" in reason
    assert "CXX" in reason
    assert "\n" not in reason


def test_with_gxx_and_the_headers_nothing_is_missing(programs: Path) -> None:
    put_program(programs / "g++")
    assert missing_compiler() is None


def test_a_file_that_is_no_program_is_no_compiler(programs: Path) -> None:
    put_program(programs / "g++").chmod(0o644)
    assert "no C++ compiler" in (missing_compiler() or "")


def test_a_compiler_for_c_is_none_for_cxx(programs: Path) -> None:
    put_program(programs / "gcc")
    assert "no C++ compiler" in (missing_compiler() or "")


@pytest.mark.parametrize("whole", [True, False])
def test_a_compiler_that_is_named_in_cxx_is_found(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """By its path, or by a name that PATH finds."""
    program = put_program((tmp_path if whole else programs) / "c++-20")
    assert "no C++ compiler" in (missing_compiler() or "")
    monkeypatch.setenv("CXX", str(program) if whole else program.name)
    assert missing_compiler() is None


@pytest.mark.parametrize("beside", [[], ["g++"], ["clang++"]])
def test_a_compiler_that_is_named_in_cxx_and_not_there_is_missing(
    programs: Path, monkeypatch: pytest.MonkeyPatch, beside: list[str]
) -> None:
    """Inductor runs the one in CXX and no other."""
    for name in beside:
        put_program(programs / name)
    monkeypatch.setenv("CXX", str(programs / "gone"))
    assert "no C++ compiler" in (missing_compiler() or "")


def test_without_cxx_the_compiler_is_gxx_and_no_other(programs: Path) -> None:
    """Inductor runs g++ where CXX is not set, and finds no clang++ by itself."""
    put_program(programs / "clang++")
    assert "no C++ compiler" in (missing_compiler() or "")


def asked(repository: Path, home: Path, programs: Path) -> str:
    """What a Python says whose headers are those in folder `home`/include."""
    library = Path(sysconfig.get_path("stdlib"))
    (home / "lib").mkdir(parents=True, exist_ok=True)
    (home / "lib" / library.name).symlink_to(library)
    environment = {
        "PATH": str(programs),
        "PYTHONHOME": str(home),
        "PYTHONPATH": str(repository / "scripts"),
        "LD_LIBRARY_PATH": str(library.parent),
    }
    python = os.path.realpath(sys.executable)
    words = [python, "-B", "-c", ASK]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_compiler_without_the_headers_of_python_is_not_enough(
    repository: Path, programs: Path, tmp_path: Path
) -> None:
    put_program(programs / "g++")
    reason = asked(repository, tmp_path / "bare", programs)
    assert reason.startswith("no Python.h: ")
    assert "apt-get install python3-dev" in reason
    headers = tmp_path / "whole" / "include" / Path(sysconfig.get_path("include")).name
    headers.mkdir(parents=True)
    (headers / "Python.h").write_text("")
    assert asked(repository, tmp_path / "whole", programs) == "None"


def test_where_both_are_missing_the_compiler_is_said_first(
    repository: Path, programs: Path, tmp_path: Path
) -> None:
    assert asked(repository, tmp_path / "bare", programs).startswith("no C++ compiler: ")

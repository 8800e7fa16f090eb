import sysconfig
from pathlib import Path

import pytest
from tightrope.machine.compiler import missing_compiler

NO_COMPILER = "no C++ compiler: install g++ (Debian: apt-get install g++), or name one in CXX; "
NO_HEADERS = "no Python.h: install the headers of Python (Debian: apt-get install python3-dev)"


# Inductor runs the compiler that CXX names and no other, else g++
@pytest.mark.parametrize(
    ("programs", "named", "headers", "missing"),
    [
        (["g++"], None, True, None),
        ([], None, True, f"{NO_COMPILER}there is no g++"),
        (["gcc", "clang++"], None, True, f"{NO_COMPILER}there is no g++"),
        (["c++-20"], "c++-20", True, None),
        (["g++", "clang++"], "gone", True, f"{NO_COMPILER}there is no gone"),
        (["g++"], None, False, NO_HEADERS),
        ([], None, False, f"{NO_COMPILER}there is no g++"),
    ],
)
def test_what_is_missing_to_compile_is_one_line_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    programs: list[str],
    named: str | None,
    headers: bool,
    missing: str | None,
) -> None:
    """With these programs in the only folder of PATH, and in the current one."""
    for name in programs:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    if headers:
        (tmp_path / "Python.h").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    if named:
        monkeypatch.setenv("CXX", named)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert missing_compiler() == missing

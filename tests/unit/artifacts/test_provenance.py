import subprocess
import sys
from pathlib import Path

import tightrope
from tightrope.artifacts.provenance import library_versions


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

import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from nvml_driver import build_driver, printed
from tightrope.artifacts.files import read_json, write_json
from tightrope.errors import TightropeError
from tightrope.machine.cores import intra_op_threads, physical_cores
from tightrope.machine.host import (
    cpu_name,
    describe_host,
    fingerprint,
    for_device,
    host_key,
    named,
    numerics_fingerprint,
    require_host,
    require_kind,
)

HOST = {
    "cpu": "Some CPU",
    "isa": ["avx2", "avx512_vnni"],
    "cores": 8,
    "memory_bytes": 1,
    "gpu": "NVIDIA H100",
    "gpu_uuid": "GPU-aaaa-1111",
    "driver": "580.1",
    "python": "3.11.7",
}


def test_this_machine_is_described() -> None:
    host = describe_host()
    flags = Path("/proc/cpuinfo").read_text()
    assert 1 <= host["cores"] <= os.cpu_count()
    assert host["memory_bytes"] > 2**30
    assert host["cpu"].strip()
    assert all(name in flags for name in host["isa"])
    fields = {"cpu", "isa", "cores", "memory_bytes", "gpu", "gpu_uuid", "driver", "python"}
    assert set(host) == fields


@pytest.mark.parametrize("field", ["cpu", "isa", "cores", "gpu", "driver"])
def test_the_fingerprint_changes_with_what_decides_the_speed(field: str) -> None:
    assert fingerprint({**HOST, field: "other"}) != fingerprint(HOST)


@pytest.mark.parametrize("field", ["gpu", "driver"])
def test_what_runs_on_a_cpu_does_not_depend_on_the_gpu_beside_it(field: str) -> None:
    other = {**HOST, field: "other"}
    for name in (fingerprint, numerics_fingerprint):
        assert name(for_device(other, "cpu")) == name(for_device(HOST, "cpu"))
    assert fingerprint(for_device(other, "cuda")) != fingerprint(for_device(HOST, "cuda"))


@pytest.mark.parametrize("field", ["memory_bytes", "python", "gpu_uuid"])
def test_the_fingerprint_is_the_same_with_other_memory_or_another_card_alike(
    field: str,
) -> None:
    assert fingerprint({**HOST, field: "other"}) == fingerprint(HOST)


def test_answers_depend_on_the_instruction_set_and_the_gpu_model_only() -> None:
    changed = {
        field: numerics_fingerprint({**HOST, field: "other"}) != numerics_fingerprint(HOST)
        for field in HOST
    }
    assert {field for field, different in changed.items() if different} == {"isa", "gpu"}


def test_a_process_tied_to_one_processor_has_one_core(repository: Path) -> None:
    processor = min(os.sched_getaffinity(0))
    program = (
        f"import os, sys; os.sched_setaffinity(0, {{{processor}}})\n"
        f"sys.path.insert(0, {str(repository / 'scripts')!r})\n"
        "from tightrope.machine.host import physical_cores; print(physical_cores())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"1\n"


def test_a_cpu_without_an_exact_name_is_told_apart_by_its_numbers() -> None:
    fields = {"model name": "AMD EPYC", "cpu family": "26", "model": "2"}
    assert cpu_name(fields) == "AMD EPYC (family 26 model 2)"
    assert cpu_name({**fields, "model": "17"}) != cpu_name(fields)
    assert cpu_name({})


def test_threads_are_the_physical_cores_unless_they_are_set() -> None:
    assert intra_op_threads("auto") == physical_cores()
    assert intra_op_threads(3) == 3


def test_a_host_of_this_fingerprint_is_accepted_and_another_machine_refused(
    tmp_path: Path,
) -> None:
    host = describe_host()
    require_host(fingerprint(host), tmp_path)
    require_host(numerics_fingerprint(host), tmp_path)
    require_host(fingerprint(for_device({**host, "gpu": "NVIDIA H200"}, "cpu")), tmp_path)
    with pytest.raises(TightropeError, match="planned for host 0123456789ab"):
        require_host("0123456789ab", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_node_of_another_type_is_refused(tmp_path: Path) -> None:
    require_host("cpu@genoa", tmp_path)
    require_host("cpu@genoa", tmp_path)
    file = tmp_path / "cpu@genoa.json"
    write_json(file, {**read_json(file), "fingerprint": "another", "cpu": "Other", "cores": 64})
    with pytest.raises(TightropeError, match=r"host genoa: .* another type .*Other"):
        require_host("cpu@genoa", tmp_path)
    assert sorted(tmp_path.iterdir()) == [file]


def test_a_driver_that_is_updated_stops_no_work_on_the_cpu(tmp_path: Path) -> None:
    host = {**describe_host(), "gpu": "NVIDIA H100", "driver": "580.1"}
    updated = {**host, "driver": "581.2"}
    for device, kept in (("cpu", True), ("cuda", False)):
        file = tmp_path / f"{device}.json"
        require_kind("genoa", for_device(host, device), file)
        with nullcontext() if kept else pytest.raises(TightropeError, match=r"driver 581\.2"):
            require_kind("genoa", for_device(updated, device), file)


def test_of_jobs_that_define_a_host_at_the_same_time_one_does(tmp_path: Path) -> None:
    words = (
        "import sys, pathlib; from tightrope.machine.host import write_first; "
        "write_first(pathlib.Path(sys.argv[1], 'cpu@a.json'), {'by': sys.argv[2]}); "
        "print(pathlib.Path(sys.argv[1], 'cpu@a.json').read_text())"
    )
    scripts = str(Path(__file__).parents[3] / "scripts")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", words, str(tmp_path), str(number)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": scripts},
        )
        for number in range(6)
    ]
    assert len({process.communicate()[0] for process in running}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["cpu@a.json"]


def test_a_node_without_the_instructions_of_its_host_is_refused(tmp_path: Path) -> None:
    own = describe_host()["isa"]
    require_host(" ".join(["cpu@genoa", *own]), tmp_path)
    with pytest.raises(TightropeError, match=r"lacks sve, which hosts.genoa.isa promises"):
        require_host(" ".join(["cpu@genoa", *own, "sve"]), tmp_path)


def test_a_summary_calls_a_host_by_the_name_of_its_kind() -> None:
    assert host_key(HOST) == host_key(named(HOST, None)) == fingerprint(HOST)
    assert host_key(named(HOST, "genoa")) == "genoa"
    assert fingerprint(named(HOST, "genoa")) == fingerprint(HOST)


def test_jobs_with_other_shares_of_a_node_are_on_the_same_node(tmp_path: Path) -> None:
    words = (
        "import sys; from tightrope.machine.host import require_host; "
        "require_host('cpu@n', sys.argv[1])"
    )
    first, *_ = sorted(os.sched_getaffinity(0))
    scripts = str(Path(__file__).parents[3] / "scripts")
    command = [sys.executable, "-c", words, str(tmp_path)]
    for taskset in (["taskset", "-c", str(first)], []):
        subprocess.run([*taskset, *command], check=True, env={**os.environ, "PYTHONPATH": scripts})


def test_the_gpu_of_a_host_is_the_one_that_was_chosen_with_its_uuid(tmp_path: Path) -> None:
    build_driver(tmp_path)
    program = (
        "from tightrope.machine.host import describe_host, fingerprint; host = describe_host(); "
        "print(host['gpu'], host['gpu_uuid'], host['driver'], fingerprint(host), sep=', ')"
    )

    def described(**variables: str) -> list[str]:
        return printed(program, tmp_path, **variables).split(", ")

    first, *_, one = described(CUDA_VISIBLE_DEVICES="GPU-aaaa-1111")
    assert first == "NVIDIA H100 80GB HBM3"
    *chosen, other = described(CUDA_VISIBLE_DEVICES="GPU-bbbb-2222")
    assert chosen == ["NVIDIA L4", "GPU-bbbb-2222", "580.65.06"]
    assert one != other
    # another card of the same kind changes the UUID, and makes nothing stale
    *_, alike = described(CUDA_VISIBLE_DEVICES="GPU-bbbb-2222", FAKE_ALIKE="1")
    assert alike == one

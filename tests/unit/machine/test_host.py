"""Hosts: what of them decides speed and answers, and which node may run a job."""

import os
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from nvml_driver import printed_each
from programs import started
from tightrope.artifacts.files import read_json, write_json
from tightrope.errors import TightropeError
from tightrope.machine.host import (
    cpu_name,
    describe_host,
    fingerprint,
    for_device,
    numerics_fingerprint,
    require_host,
    require_kind,
)

HOST = {
    **{"cpu": "Some CPU", "isa": ["avx2", "avx512_vnni"], "cores": 8, "memory_bytes": 1},
    **{"gpu": "NVIDIA H100", "gpu_uuid": "GPU-aaaa-1111", "driver": "580.1", "python": "3.11.7"},
}


def test_this_machine_is_described() -> None:
    host = describe_host()
    assert set(host) == set(HOST)
    assert 1 <= host["cores"] <= os.cpu_count()
    assert host["memory_bytes"] > 2**30
    assert host["cpu"].strip()
    assert all(name in Path("/proc/cpuinfo").read_text() for name in host["isa"])
    # a virtual CPU without an exact name is told apart by its numbers
    fields = {"model name": "AMD EPYC", "cpu family": "26", "model": "2"}
    assert cpu_name(fields) == "AMD EPYC (family 26 model 2)"
    assert cpu_name({})


def changed_by(name: Callable[[dict[str, Any]], str], device: str = "cuda") -> set[str]:
    """The facts of a host that its name on this device depends on."""
    own = name(for_device(HOST, device))
    return {one for one in HOST if name(for_device({**HOST, one: "other"}, device)) != own}


def test_the_fingerprint_changes_with_what_decides_speed_and_answers() -> None:
    """Neither with other memory nor with another card alike, nor on a CPU with the GPU beside."""
    assert changed_by(fingerprint) == {"cpu", "isa", "cores", "gpu", "driver"}
    assert changed_by(fingerprint, "cpu") == {"cpu", "isa", "cores"}
    assert changed_by(numerics_fingerprint) == {"isa", "gpu"}
    assert changed_by(numerics_fingerprint, "cpu") == {"isa"}


def test_a_node_of_another_fingerprint_type_or_instructions_is_refused(tmp_path: Path) -> None:
    host = describe_host()
    on_cpu = for_device({**host, "gpu": "NVIDIA H200"}, "cpu")
    for key in (fingerprint(host), numerics_fingerprint(host), fingerprint(on_cpu)):
        require_host(key, tmp_path)
    with pytest.raises(TightropeError, match="planned for host 0123456789ab"):
        require_host("0123456789ab", tmp_path)
    assert not list(tmp_path.iterdir())
    # a place has the type of its first node, and its instructions
    place = " ".join(["cpu@genoa", *describe_host()["isa"]])
    for _ in range(2):
        require_host(place, tmp_path)
    with pytest.raises(TightropeError, match=r"lacks sve, which hosts.genoa.isa promises"):
        require_host(f"{place} sve", tmp_path)
    file = tmp_path / "cpu@genoa.json"
    write_json(file, {**read_json(file), "fingerprint": "another", "cpu": "Other", "cores": 64})
    with pytest.raises(TightropeError, match=r"host genoa: .* another type .*Other"):
        require_host(place, tmp_path)
    assert sorted(tmp_path.iterdir()) == [file]


def test_a_node_with_another_share_or_driver_stops_no_work_on_the_cpu(tmp_path: Path) -> None:
    for changes, refused in (({"cores": 1}, ()), ({"driver": "581.2"}, ("cuda",))):
        for device in ("cpu", "cuda"):
            file, other = tmp_path / f"{device}.json", for_device({**HOST, **changes}, device)
            require_kind("genoa", for_device(HOST, device), file)
            error = pytest.raises(TightropeError, match=r"driver 581\.2")
            with error if device in refused else nullcontext():
                require_kind("genoa", other, file)


def test_of_jobs_that_define_a_host_at_the_same_time_one_does(repository, tmp_path) -> None:
    words = (
        "import sys, pathlib; from tightrope.machine.host import write_first; "
        "write_first(pathlib.Path(sys.argv[1], 'cpu@a.json'), {'by': sys.argv[2]}); "
        "print(pathlib.Path(sys.argv[1], 'cpu@a.json').read_text())"
    )
    each = [("-c", words, tmp_path, number) for number in range(4)]
    running = [started(repository, *command, stdout=subprocess.PIPE) for command in each]
    assert len({process.communicate()[0] for process in running}) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["cpu@a.json"]


def test_the_gpu_of_a_host_is_the_one_that_was_chosen_with_its_uuid(driver: Path) -> None:
    program = (
        "from tightrope.machine.host import describe_host, fingerprint; "
        "describe_host.cache_clear(); host = describe_host(); "
        "print(host['gpu'], host['gpu_uuid'], host['driver'], fingerprint(host), sep=', ')"
    )
    second = {"CUDA_VISIBLE_DEVICES": "GPU-bbbb-2222"}
    cases = [{"CUDA_VISIBLE_DEVICES": "GPU-aaaa-1111"}, second, second | {"FAKE_ALIKE": "1"}]
    first, other, alike = (one.split(", ") for one in printed_each(program, driver, cases))
    assert first[:3] == ["NVIDIA H100 80GB HBM3", "GPU-aaaa-1111", "580.65.06"]
    assert other[:3] == ["NVIDIA L4", "GPU-bbbb-2222", "580.65.06"]
    # another card of the same kind changes the UUID, and makes nothing stale
    assert alike[1] == "GPU-bbbb-2222"
    assert other[3] != first[3] == alike[3]

"""What a bundle says of the machine on which it lands, from files as Linux has them."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from tightrope.machine.host import cpu_fields, cpu_name
from tightrope.plan.job_inputs import FOLDER

PROGRAM = Path(__file__).parents[3] / "scripts" / FOLDER / "machine.py"


@pytest.fixture
def machine(tmp_path: Path) -> Any:
    """The program, which reads the files of `tmp_path`."""
    spec = importlib.util.spec_from_file_location("machine_of_a_bundle", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.CPUS, module.STAT, module.QUOTA = tmp_path, tmp_path / "stat", tmp_path / "cpu.max"
    return module


def write_counters(folder: Path, *, user: int, steal: int, throttled: int) -> None:
    """Hundredths of seconds for programs, and taken by the hypervisor; how often throttled."""
    (folder / "stat").write_text(f"cpu  {user} 0 0 0 0 0 0 {steal} 0 0\n")
    file = folder / "cpu0/thermal_throttle/core_throttle_count"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{throttled}\n")


def test_it_names_what_slowed_it_down_and_has_the_processors_of_its_quota(machine, tmp_path):
    write_counters(tmp_path, user=0, steal=0, throttled=7)
    assert machine.Watch().causes() == []
    watch = machine.Watch()
    write_counters(tmp_path, user=360_000, steal=180_000, throttled=9)
    busy, stolen, throttled = watch.causes()
    assert throttled == "throttled: the processor was too hot or at its power limit"
    assert busy.startswith("busy: other programs used ")
    assert stolen.startswith("busy: the hypervisor took ")
    assert machine.cpu_name(machine.cpu_fields()) == cpu_name(cpu_fields())
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert machine.cpus() == 0.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    allowed = machine.cpus()
    (tmp_path / "cpu.max").unlink()
    assert machine.cpus() == allowed >= 1

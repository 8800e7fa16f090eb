"""What follows from the device of a job."""

import hosts
import pytest
from snakemake.iocontainers import Wildcards
from tightrope.plan import devices
from tightrope.plan.plan import make_plan

DEVICES = {"cpu": (0, "../envs/cpu.yaml"), "cuda": (1, "../envs/gpu.yaml")}


@pytest.mark.parametrize("device", DEVICES)
def test_a_job_on_a_gpu_takes_one_and_the_packages_for_it(device: str) -> None:
    on = Wildcards(fromdict={"device": device})
    of = Wildcards(fromdict={"variant": f"{device}-pytorch-fp32"})
    assert (devices.gpus_of_device(on), devices.environment_of_device(on)) == DEVICES[device]
    assert (devices.gpus_of_variant(of), devices.environment_of_variant(of)) == DEVICES[device]


@pytest.mark.parametrize("device", DEVICES)
def test_a_training_takes_what_its_device_takes(device: str) -> None:
    config = {"models": {"m": {"train": {"device": device}}}}
    model = Wildcards(fromdict={"model": "m"})
    found = devices.gpus_of_training(config, model), devices.environment_of_training(config, model)
    assert found == DEVICES[device]


def test_times_hold_for_a_host_and_numbers_for_all_that_compute_alike() -> None:
    config = {
        **{
            "host": "auto",
            "hosts": {},
            "devices": ["cpu"],
            "engines": {},
            "models": {},
            "buckets": None,
        },
        **{"traffic": {"variants": []}, "throughput": {"variants": []}},
        **{"profile": {"variants": []}, "idleness": {"variants": []}},
        **{"explain": None, "training": {"epochs": 0}},
    }
    plan = make_plan(config, {**hosts.AMX, "gpu": "NVIDIA H100"})
    variant = Wildcards(fromdict={"variant": "cpu-pytorch-fp32"})
    device = Wildcards(fromdict={"device": "cpu"})
    assert devices.host_of_variant(plan, variant) == devices.host_of_device(plan, device)
    assert devices.numerics_of_variant(plan, variant) == devices.numerics_of_device(plan, device)
    assert devices.host_of_device(plan, device) == plan.host["cpu"]
    assert devices.numerics_of_device(plan, device) == plan.numerics["cpu"] != plan.host["cpu"]
    assert plan.host["cuda"] != plan.host["cpu"]

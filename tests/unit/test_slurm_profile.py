"""The profile for Slurm, its page and its packages agree; what is asked of Slurm is read right."""

import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

from slurm_facts import has_features, limits_of, minutes_of, records  # noqa: E402, of tools/

PROFILE = ROOT / "profiles/slurm/config.yaml"


def test_every_value_to_adapt_is_marked_and_packages_are_those_of_tests() -> None:
    marked = re.findall(r"^ +(?:# )?(\w+): .*# HERE", PROFILE.read_text(), re.MULTILINE)
    variables = yaml.safe_load(PROFILE.read_text())["__variables__"]
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "profiles/README.md").read_text(), re.MULTILINE)
    assert set(variables) == set(marked) - {"devices"}
    assert sorted(listed) == sorted(marked)
    # no key is in both profiles, but that of the template language
    default = yaml.safe_load((ROOT / "profiles/default/config.yaml").read_text())
    assert set(default) & set(yaml.safe_load(PROFILE.read_text())) == {
        "__use_yte__",
        "__definitions__",
    }
    # the packages are those that the tests run
    pinned = re.compile(r"^[\w-]+==\S+$", re.MULTILINE)
    slurm, test = (
        set(pinned.findall((ROOT / f"envs/{name}.txt").read_text())) for name in ("slurm", "test")
    )
    assert slurm and slurm <= test


def test_kubernetes_has_the_same_rules_but_those_that_run_where_snakemake_does() -> None:
    slurm, other = (
        yaml.safe_load((ROOT / f"profiles/{name}/config.yaml").read_text())
        for name in ("slurm", "kubernetes")
    )
    here = {"prepare_data", "split_data", "prepare_checkpoint", "summarize", "render_report"}
    assert set(other["set-resources"]) == set(slurm["set-resources"]) - here
    assert set(other["set-threads"]) <= set(slurm["set-threads"]) - here
    for rule, wanted in other["set-resources"].items():
        assert wanted["mem_mb"] == slurm["set-resources"][rule]["mem_mb"]
    whole = {rule for rule, threads in slurm["set-threads"].items() if threads == "?cores"}
    assert whole <= {rule for rule, threads in other["set-threads"].items() if threads == "?cores"}


def test_constraints_are_compared_with_the_features_of_a_node() -> None:
    for constraint, fits in (
        ("zen4", True),
        ("zen", False),
        ("zen4&gpu", True),
        ("zen3&gpu", False),
        ("zen3|zen4", True),
        ("[zen3|ice-lake]*2", False),
        ("(zen3|zen4)&gpu", True),
    ):
        assert has_features({"AvailableFeatures": "zen4,gpu"}, constraint) == fits


def test_times_are_minutes_and_a_job_may_have_what_is_left_of_a_node() -> None:
    times = {"01:30:00": 90, "2-00:00:00": 2880, "UNLIMITED": float("inf"), "00:00:30": 0.5}
    assert {limit: minutes_of(limit) for limit in times} == times
    line = "NodeName=a CPUEfctv=62 CPUTot=64 OS=Linux 6.1 #1 SMP RealMemory=1000 MemSpecLimit=100"
    node: dict[str, Any] = records(line, "NodeName")["a"]
    unlimited = {"MaxCPUsPerNode": "UNLIMITED", "MaxMemPerNode": "UNLIMITED"}
    assert limits_of(node, unlimited) == {"threads": 62, "mem_mb": 900}
    half = {"MaxCPUsPerNode": "32", "MaxMemPerNode": "500"}
    assert limits_of(node, half) == {"threads": 32, "mem_mb": 500}

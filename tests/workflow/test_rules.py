"""The rules are contracts: one script each, a log, an environment, resources for a cluster."""

import ast
import re

import pytest
import yte
from tightrope.engine_table import ENGINES
from tiny_project import CONFIG, MODEL, Project

RULE = re.compile(r"^rule (\w+):\n((?:[ \t].*\n|\n)+)", re.MULTILINE)
DERIVED = re.compile(r"^use rule (\w+) as (\w+) with:\n((?:[ \t].*\n|\n)+)", re.MULTILINE)
FIELD = re.compile(r"^    (\w+):", re.MULTILINE)
# a field with its text, and a parameter with its value
TEXT = re.compile(r"^    (\w+):((?:.*\n)(?:        .*\n)*)", re.MULTILINE)
PARAMETER = re.compile(
    r"^        (\w+)=((?:.*\n)(?:            .*\n|        \),?\n)*)", re.MULTILINE
)
# of the CPU, of the GPU, and of the one on which a variant runs or a model is trained
ENVIRONMENTS = (
    '"../envs/cpu.yaml"',
    '"../envs/gpu.yaml"',
    "environment_of_device",
    "environment_of_variant",
    "environment_of_training",
)
RELU = {"activation": "relu"}
TWICE = {"from": MODEL, "prune": {"target": "2x"}}
# no variant on a CPU
# asked for by name, after a run, where Snakemake runs
BUNDLES = {"bundle", "bundle_triton"}
ON_GPU = {f"build_{name}" for name, engine in ENGINES.items() if "cpu" not in engine.precisions}


@pytest.fixture(scope="module")
def derived(fresh: Project) -> dict[str, tuple[str, str]]:
    """Of each rule that is derived: the rule that it is derived from, and its own text."""
    files = sorted((fresh / "rules").glob("*.smk"))
    found = (one for file in files for one in DERIVED.findall(file.read_text()))
    return {name: (original, body) for original, name, body in found}


@pytest.fixture(scope="module")
def rules(fresh: Project, derived: dict[str, tuple[str, str]]) -> dict[str, str]:
    """The text of each rule that runs a script; of a derived one with what it inherits."""
    files = sorted((fresh / "rules").glob("*.smk"))
    found = {name: body for file in files for name, body in RULE.findall(file.read_text())}
    return found | {name: whole(found[original], own) for name, (original, own) in derived.items()}


def whole(original: str, own: str) -> str:
    """The text of a derived rule: its own fields replace the original's, parameters one by one."""
    fields = dict(TEXT.findall(original)) | dict(TEXT.findall(own))
    mine = PARAMETER.findall(dict(TEXT.findall(own)).get("params", ""))
    inherited = PARAMETER.findall(dict(TEXT.findall(original))["params"])
    fields["params"] = "\n" + "".join(
        f"        {name}={value}" for name, value in (dict(inherited) | dict(mine)).items()
    )
    return "".join(f"    {name}:{text}" for name, text in fields.items())


def test_every_script_is_run_by_the_rule_of_its_name_and_one_builds_all_engines(
    fresh: Project, rules: dict[str, str]
) -> None:
    scripts = {path.stem for path in (fresh / "scripts").glob("*.py")}
    run = {}
    for name, body in rules.items():
        (run[name],) = re.findall(r'"\.\./scripts/(\w+)\.py"', body)
        assert f"<logs>/{name}/" in body
        assert re.findall(r'code_of\(\s*"(\w+)\.py"', body) in ([run[name]], [])
    assert set(run.values()) == scripts
    shared = {f"build_{engine}": "build_engine" for engine in ENGINES}
    assert run == {name: name for name in rules} | shared | {
        "compare_activation": "measure_latency",
    }


def test_every_rule_has_a_log_an_environment_a_code_digest_and_resources(
    fresh: Project, rules: dict[str, str]
) -> None:
    for name, body in rules.items():
        assert {"output", "log", "conda", "resources", "params", "script"} <= {
            *FIELD.findall(body)
        }, name
        assert re.search(r"^        code=\w+", body, re.MULTILINE), name
        assert re.search(r"^        mem_mb=\d+", body, re.MULTILINE), name
        assert re.search(r"^        runtime=\d+", body, re.MULTILINE), name
        (environment,) = re.findall(r"^    conda:\n        (\S+)", body, re.MULTILINE)
        assert environment in ENVIRONMENTS, name
        assert (environment == ENVIRONMENTS[1]) == ("gpu=1," in body), name
        assert environment.startswith('"') or "gpu=gpus_of_" in body, name
    assert (fresh / "envs/cpu.yaml").is_file()
    assert (fresh / "envs/gpu.yaml").is_file()


def test_what_an_engine_keeps_for_its_next_builds_is_named_by_its_rule(
    fresh: Project, rules: dict[str, str]
) -> None:
    keep = set()
    for engine in ENGINES:
        module = ast.parse((fresh / f"scripts/tightrope/engines/{engine}.py").read_text())
        (build,) = [node for node in module.body if getattr(node, "name", "") == "build"]
        assert isinstance(build, ast.FunctionDef)
        if "state" in [one.arg for one in build.args.kwonlyargs]:
            keep.add(f"build_{engine}")
            state = f'state=LOCATION.made("artifacts/{{model}}/work/{engine}"),'
            assert state in rules[f"build_{engine}"]
        assert '"work"' not in ast.unparse(module).replace("'", '"'), engine
    assert keep == {"build_onnxruntime", "build_tensorrt"}
    kept = {name for name, body in rules.items() if "{model}/work/" in body}
    assert kept == {*keep, "train_model"}


def test_a_derived_rule_has_outputs_a_log_and_a_digest_of_its_own(
    derived: dict[str, tuple[str, str]],
) -> None:
    engines = {f"build_{engine}" for engine in ENGINES} - {"build_pytorch"}
    assert set(derived) == {"compare_activation", *engines}
    for name, (_, body) in derived.items():
        assert {"output", "log", "params"} <= {*FIELD.findall(body)}
        assert f"<logs>/{name}/" in body
        assert re.search(r"^        code=\w+", body, re.MULTILINE)


def test_the_report_reads_every_part_of_its_template(fresh: Project, rules: dict[str, str]) -> None:
    """What a rule does not name would change without its knowing."""
    (names,) = re.findall(r"part=\[(.*?)\]", rules["render_report"], re.DOTALL)
    folder = fresh / "scripts/tightrope/report/template"
    assert sorted(re.findall(r'"(\w+)"', names)) == sorted(p.stem for p in folder.glob("*.html"))


def test_no_rule_has_a_directory_as_output(rules: dict[str, str]) -> None:
    assert not [name for name, body in rules.items() if "directory(" in body]


def test_lint_has_no_findings(fresh: Project) -> None:
    done = fresh.snakemake("--lint")
    assert done.returncode == 0, done.stdout
    assert "Congratulations" in done.stdout


def test_the_slurm_profile_plans_every_job_with_its_resources(
    unrun: Project, rules: dict[str, str]
) -> None:
    profile = yte.process_yaml((unrun / "profiles/slurm/config.yaml").read_text())
    with_resources = set(rules) - BUNDLES
    assert set(profile["set-threads"]) == with_resources == set(profile["set-resources"])
    traffic = (
        "--config",
        "host=cpu-node",
        "traffic={variants: [cpu-pytorch-fp32]}",
        "throughput={variants: [cpu-pytorch-fp32], sequence: 8, batches: [1]}",
        "profile={variants: [cpu-pytorch-fp32]}",
        "idleness={variants: [cpu-pytorch-fp32]}",
        "explain=verify",
        "training={epochs: 2}",
    )
    unrun.configure(
        models={
            MODEL: CONFIG["models"][MODEL],
            "relu": {**CONFIG["models"][MODEL], **RELU},
            "half": TWICE,
            "student": {"from": MODEL, "distill": {"from": MODEL}, "train": {"epochs": 1}},
        },
        engines={
            name: list(engine.precisions["cpu"])
            for name, engine in ENGINES.items()
            if "cpu" in engine.precisions
        },
        accuracy_budget_points=50.0,  # what a pool of 32 can tell of int8-auto
    )
    done = unrun.snakemake("--profile", "profiles/slurm", "--cores", "64", "--dry-run", *traffic)
    assert done.returncode == 0, done.stdout
    planned = re.findall(r"^(?:local)?rule (\w+):\n((?:    .*\n)+)", done.stdout, re.MULTILINE)
    assert {name for name, _ in planned} == {*rules, "all"} - ON_GPU - BUNDLES
    most = {"mem_mb": 60000, "runtime": 1440}  # of a node, of the partition
    for name, body in planned:
        if name == "all":
            continue
        (line,) = re.findall(r"^    resources: (.*)", body, re.MULTILINE)
        facts = dict(re.findall(r"(\w+)=([^,]+)", line))
        threads = dict(re.findall(r"^    (threads): (\d+)", body, re.MULTILINE))
        asked = profile["set-resources"][name]
        assert int(threads.get("threads", 1)) == profile["set-threads"][name], name
        for resource in ("mem_mb", "runtime"):
            # the rule's own figure, or the profile's, would grow with no attempt
            assert int(facts[resource]) == eval(asked[resource], {"attempt": 1}), (name, resource)
            assert eval(asked[resource], {"attempt": 2}) == 2 * int(facts[resource])
            assert eval(asked[resource], {"attempt": 1000}) == most[resource]
        assert facts["constraint"] == "cpu-node", name
        assert facts.get("gpu", "0") == "0", name
        exclusive = facts.get("slurm_extra") == "--exclusive"
        timed = name.startswith(("measure_", "verify_", "compare_", "race_", "choose_"))
        assert exclusive == timed, name

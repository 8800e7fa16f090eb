"""Seals: a file counts as written by a job of this folder, or is refused with the remedy."""

import ast
import shutil
import stat
from pathlib import Path

import pytest
from tightrope.artifacts import seals
from tightrope.artifacts.files import write_bytes, write_json
from tightrope.artifacts.seals import (
    make_secret,
    read_sealed_json,
    require_sealed,
    seal,
    write_sealed,
    write_sealed_json,
)
from tightrope.errors import ArtifactError
from tightrope.records.latency import LatencyRecord
from tightrope.summary.reading import read_record

ROOT = Path(__file__).parents[3]
RECORD = Path("reports/tiny/fast.latency.json")
REFUSED = rf"^{RECORD}: changed since a run here wrote it, .*: python tools/reseal\.py$"
# modules that write JSON which is no artifact: state, caches and copies outside the two folders
WRITE = {
    "artifacts/provenance.py",
    "artifacts/private_copy.py",
    "inputs/image_settings.py",  # of a checkpoint, whose manifest lists it
    "plan/continuing.py",
    "machine/host.py",
    "terminal/seconds.py",
}
# modules that read JSON which is no artifact, or for words on the terminal and what is planned
READ = {
    "artifacts/failures.py",  # whether a file holds a failure, which is checked where it counts
    "artifacts/packs.py",  # what the manifest lists that the job itself has just written
    "artifacts/provenance.py",
    "bundle/subject.py",  # of a verified copy of an engine
    "inputs/image_settings.py",
    "jobs/ended.py",
    "machine/host.py",
    "model/config.py",  # of a checkpoint
    "plan/announce.py",
    "plan/rebuilds.py",
    "runtimes/tensorrt/trtexec.py",
    "summary/failures.py",
    "terminal/decision.py",
    "terminal/seconds.py",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of runs, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    make_secret()
    return tmp_path


def test_what_a_job_wrote_is_read_by_relative_and_absolute_path(folder: Path) -> None:
    write_sealed_json(RECORD, {"median_ms": 1.5})
    (folder / "artifacts").mkdir()
    for path in paths_of_record(folder):
        assert read_sealed_json(path) == {"median_ms": 1.5}


def paths_of_record(folder: Path) -> list[Path | str]:
    """Paths that lead to the record, from the folder of the run."""
    around = f"../{folder.name}/{RECORD}"
    return [RECORD, f"./{RECORD}", folder / RECORD, f"{folder}/artifacts/../{RECORD}", around]


def test_a_changed_digit_is_refused_whatever_path_leads_there(folder: Path) -> None:
    write_sealed_json(RECORD, {"median_ms": 1.5})
    write_bytes(RECORD, RECORD.read_bytes().replace(b"1.5", b"1.4"))
    (folder / "artifacts").mkdir()
    with pytest.raises(ArtifactError, match=REFUSED):
        read_sealed_json(RECORD)
    for path in paths_of_record(folder):
        with pytest.raises(ArtifactError, match="changed since a run here wrote it"):
            read_sealed_json(path)


def test_what_no_job_wrote_is_refused_until_it_is_sealed(folder: Path) -> None:
    write_json(RECORD, {"median_ms": 1.5})
    with pytest.raises(ArtifactError, match=REFUSED):
        read_sealed_json(RECORD)
    seal(RECORD)
    assert read_sealed_json(RECORD) == {"median_ms": 1.5}


def test_a_sealed_file_in_the_place_of_another_is_refused(folder: Path) -> None:
    other = RECORD.with_name("slow.latency.json")
    write_sealed_json(RECORD, {"median_ms": 1.5})
    write_sealed_json(other, {"median_ms": 9.5})
    shutil.copy(other, RECORD)
    with pytest.raises(ArtifactError, match=REFUSED):
        require_sealed(RECORD)


def test_the_seals_of_another_folder_do_not_fit(folder: Path) -> None:
    write_sealed_json(RECORD, {"median_ms": 1.5})
    seals.SECRET.unlink()
    make_secret()
    with pytest.raises(ArtifactError, match=REFUSED):
        require_sealed(RECORD)


def test_a_job_that_is_killed_before_it_writes_loses_nothing(folder: Path) -> None:
    for number in range(3):
        write_sealed_json(RECORD, {"step": number})
        before = RECORD.read_bytes()
        seal(RECORD, b"what the job is about to write")
        assert read_sealed_json(RECORD) == {"step": number}
        write_sealed(RECORD, before)


def test_what_was_overwritten_long_ago_is_refused(folder: Path) -> None:
    write_sealed_json(RECORD, {"step": 0})
    oldest = RECORD.read_bytes()
    for number in (1, 2):
        write_sealed_json(RECORD, {"step": number})
    write_bytes(RECORD, oldest)
    with pytest.raises(ArtifactError, match=REFUSED):
        require_sealed(RECORD)


def test_the_secret_is_its_owners_alone_and_stays(folder: Path) -> None:
    secret = seals.SECRET.read_bytes()
    assert stat.S_IMODE(seals.SECRET.stat().st_mode) == 0o600
    assert len(secret) == seals.SECRET_BYTES
    make_secret()
    assert seals.SECRET.read_bytes() == secret
    assert list(seals.SECRET.parent.iterdir()) == [seals.SECRET]


def test_a_secret_that_was_cut_off_is_one_line(folder: Path) -> None:
    write_sealed_json(RECORD, {})
    seals.SECRET.write_bytes(b"short")
    with pytest.raises(ArtifactError, match=r"^\.snakemake/tightrope/secret: not 32 bytes"):
        require_sealed(RECORD)


def test_a_folder_without_runs_and_files_elsewhere_have_no_seals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_sealed_json(RECORD, {})
    assert read_sealed_json(RECORD) == {}
    make_secret()
    write_sealed_json("elsewhere/a.json", {})
    assert read_sealed_json("elsewhere/a.json") == {}
    assert not seals.SEALS.exists()


def test_a_record_that_is_read_for_the_summary_is_refused_too(folder: Path) -> None:
    write_json(RECORD, {"median_ms": 1.5})
    with pytest.raises(ArtifactError, match=REFUSED):
        read_record(LatencyRecord, RECORD)


@pytest.mark.parametrize(("function", "expected"), [("write_json", WRITE), ("read_json", READ)])
def test_every_module_seals_what_it_writes_and_checks_what_it_reads(
    function: str, expected: set[str]
) -> None:
    package = ROOT / "scripts/tightrope"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(calls(function, node) for node in ast.walk(ast.parse(path.read_text())))
    }
    assert found == expected


def calls(function: str, node: ast.AST) -> bool:
    """Return whether the node calls the function of that name."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == function


@pytest.fixture
def copy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the copy of the record is, with files in storage."""
    monkeypatch.setenv(seals.COPIES_VARIABLE, str(folder / ".snakemake/storage"))
    monkeypatch.setenv(seals.SECRET_VARIABLE, seals.SECRET.read_bytes().hex())
    return Path(".snakemake/storage/s3/bucket", RECORD)


def test_a_file_in_storage_has_its_seal_beside_it_for_jobs_of_any_folder(
    copy: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sealed_json(copy, {"median_ms": 1.5})
    node = tmp_path_factory.mktemp("node")
    there = node / "copies/s3/bucket" / RECORD
    shutil.copytree(copy.parent, there.parent)
    monkeypatch.chdir(node)
    monkeypatch.setenv(seals.COPIES_VARIABLE, str(node / "copies"))
    assert read_sealed_json(there) == {"median_ms": 1.5}
    write_bytes(there, there.read_bytes().replace(b"1.5", b"1.4"))
    line = rf"^s3/bucket/{RECORD}: changed in storage, .* TIGHTROPE_SECRET .*\(docs/storage\.md\)$"
    with pytest.raises(ArtifactError, match=line):
        read_sealed_json(there)


@pytest.mark.parametrize("what", ["seal", "place", "secret"])
def test_a_file_in_storage_needs_the_seal_of_its_place_and_secret(
    copy: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sealed_json(copy, {"median_ms": 1.5})
    read, seal_file = copy, copy.with_name(f"{copy.name}.seal")
    if what == "seal":
        seal_file.unlink()
    elif what == "place":
        read = Path(str(copy).replace("fast", "slow"))
        shutil.copy(copy, read)
        shutil.copy(seal_file, read.with_name(f"{read.name}.seal"))
    else:
        monkeypatch.setenv(seals.SECRET_VARIABLE, "0" * 64)
    with pytest.raises(ArtifactError, match="changed in storage"):
        read_sealed_json(read)


def test_a_secret_of_the_environment_takes_the_place_of_the_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(seals.SECRET_VARIABLE, "0a" * 32)
    make_secret()
    assert not seals.SECRET.exists()
    write_sealed_json(RECORD, {"median_ms": 1.5})
    assert read_sealed_json(RECORD) == {"median_ms": 1.5}
    monkeypatch.setenv(seals.SECRET_VARIABLE, "0b" * 32)
    with pytest.raises(ArtifactError, match=REFUSED):
        read_sealed_json(RECORD)
    monkeypatch.setenv(seals.SECRET_VARIABLE, "secret")
    with pytest.raises(ArtifactError, match=r"^TIGHTROPE_SECRET: not 64 hex digits"):
        make_secret()


def test_a_secret_that_is_a_link_to_nowhere_is_no_missing_secret(folder: Path) -> None:
    write_sealed_json(RECORD, {"median_ms": 1.5})
    seals.SECRET.unlink()
    seals.SECRET.symlink_to(seals.SECRET.name)
    with pytest.raises(ArtifactError, match=r"tightrope/secret: cannot be read"):
        read_sealed_json(RECORD)


def test_files_below_the_prefix_of_a_module_are_sealed_too(folder: Path) -> None:
    record = Path("results/models", RECORD)
    write_sealed_json(record, {"median_ms": 1.5})
    write_bytes(record, record.read_bytes().replace(b"1.5", b"1.4"))
    with pytest.raises(ArtifactError, match="changed since a run here wrote it"):
        read_sealed_json(record)
    elsewhere = folder.parent / "elsewhere/reports/a.json"
    write_json(elsewhere, {})
    assert read_sealed_json(elsewhere) == {}

"""A folder of files and their manifest as one more file, for storage that keeps single files.

Snakemake knows a folder by its manifest. Where files travel through an object store, the others of
the folder travel in its pack: a tar file beside the folder, without compression.
"""

import atexit
import os
import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

from tightrope.artifacts.files import open_regular, read_json, storage_errors, writing
from tightrope.errors import ArtifactError

# the manifests of folders, by their names
MANIFESTS = ("data.json", "checkpoint.json", "outputs.json", "engine.json")
SUFFIX = ".tar"
# the manifests of splits are in this folder, and list files of the folder with the data
SPLITS, DATA = "splits", "data"


def pack_of(path: str) -> str | None:
    """Return the pack of the folder whose manifest is `path`; None for other files."""
    folder, name = PurePosixPath(path).parent, PurePosixPath(path).name
    return f"{folder}{SUFFIX}" if name in MANIFESTS else None


def read_with(path: str) -> str | None:
    """Return the pack with the files that the manifest `path` lists; None for other files."""
    folder = PurePosixPath(path).parent
    return str(folder.with_name(DATA + SUFFIX)) if folder.name == SPLITS else pack_of(path)


def write_pack(pack: Path, manifest: Path) -> None:
    """Write the files that `manifest` lists into `pack`; raises ArtifactError for a missing one.

    An artifact that holds a failure lists none.
    """
    files = read_json(manifest, dict[str, Any]).get("files", {})
    with writing(pack) as stream, tarfile.open(fileobj=stream, mode="w") as archive:
        for name in files:
            with open_regular(manifest.parent / name) as file:
                archive.addfile(archive.gettarinfo(arcname=name, fileobj=file), file)


def unpack(pack: Path) -> None:
    """Write the files in `pack` into its folder.

    Raises ArtifactError for what is no pack, and for a member that is not a regular file below the
    folder. Who reads the files compares them with the manifest.
    """
    folder = pack.with_suffix("")
    try:
        with open_regular(pack) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            for member in archive:
                parts = PurePosixPath(member.name).parts
                outside = member.name.startswith("/") or ".." in parts
                if not member.isreg() or not parts or outside:
                    raise ArtifactError(f"{pack}: member {member.name!r} is no file of its folder")
                target, content = folder.joinpath(*parts), archive.extractfile(member)
                assert content is not None  # of a regular file
                with storage_errors(target), content, writing(target) as copy:
                    shutil.copyfileobj(content, copy)
    except tarfile.TarError as error:
        raise ArtifactError(f"{pack}: no pack of Tightrope ({error})") from error


def with_packs(job: Any) -> None:
    """Unpack the packs among the inputs of a job, and write those among its outputs at the end.

    They have no names; outside of storage a job has none. Raises ArtifactError as `unpack` does.
    """
    for path in packs_among(job, "input"):
        unpack(Path(path))
    if packs := set(packs_among(job, "output")):
        pairs = [(pack_of(path), Path(path)) for _, path in job.output.items()]
        process = os.getpid()

        def write_own() -> None:
            if os.getpid() == process:  # not in a forked child
                for pack, manifest in pairs:
                    if pack in packs and manifest.is_file():
                        write_pack(Path(pack), manifest)

        atexit.register(write_own)


def packs_among(job: Any, side: str) -> list[str]:
    """Return the packs among the inputs or outputs of a job; one from the command line has none."""
    paths = getattr(job, side, None)
    return [path for path in paths if path.endswith(SUFFIX)] if isinstance(paths, list) else []

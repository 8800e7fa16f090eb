"""Rename a model with all that was made for it: python tools/rename_model.py OLD NEW.

Run it in the folder of the project, then rename the model in the configuration. Snakemake's records
of its files are renamed too, so that it goes on to notice which settings have changed.
"""

import argparse
import atexit
import json
import os
import shutil
import sys
from base64 import urlsafe_b64decode
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from snakemake.persistence.file import FilePersistence
from tightrope.artifacts.content import read_artifact, write_artifact
from tightrope.artifacts.files import sha256
from tightrope.artifacts.paths import FOLDERS
from tightrope.errors import TightropeError
from tightrope.jobs.job import print_one_line
from tightrope.plan.orphans import take_folder

SNAKEMAKE = Path(".snakemake")


def main() -> None:
    """Rename the model that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    words = parser.parse_args()
    if not Path("artifacts", words.old).is_dir():
        raise TightropeError(f"artifacts/{words.old}: there is no such folder; name a model")
    for folder in FOLDERS:
        if Path(folder, words.new).exists():
            raise TightropeError(f"{folder}/{words.new}: exists; remove it or take another name")
    atexit.register(take_folder().release)
    for folder in FOLDERS:
        if Path(folder, words.old).exists():
            Path(folder, words.old).rename(Path(folder, words.new))
    # pictures and bundles have the name of the model in them, and are made again
    shutil.rmtree(Path("reports", words.new, "graphs"), ignore_errors=True)
    shutil.rmtree(Path("artifacts", words.new, "bundle"), ignore_errors=True)
    rename_metadata(words.old, words.new, rename_in_records(words.old, words.new))
    print(f"renamed; now name the model {words.new} in the configuration")


def rename_in_records(old: str, new: str) -> dict[str, str]:
    """Write the new name into the records and the checkpoint's manifest of a model.

    Returns the new digest of each file by its old one.
    """
    digests = {}
    checkpoint = Path("artifacts", new, "checkpoint/checkpoint.json")
    for path in [*sorted(Path("reports", new).glob("*.json")), checkpoint]:
        if not path.exists():
            continue
        record = read_artifact(path)
        if record.get("model") == old:
            before, times = sha256(path), path.stat()
            write_artifact(path, {**record, "model": new})
            if path == checkpoint:  # nothing is to be made from it again
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            digests[before] = sha256(path)
    return digests


def rename_metadata(old: str, new: str, digests: dict[str, str]) -> None:
    """Rename the model in Snakemake's metadata of its files, whose digests have changed."""
    store = FilePersistence(nolock=True, path=SNAKEMAKE)
    metadata = SNAKEMAKE / "metadata"
    for path in [path for path in metadata.rglob("*") if path.is_file()]:
        parts = path.relative_to(metadata).parts
        name = urlsafe_b64decode("".join(part.removeprefix("@") for part in parts)).decode()
        if not name.startswith(tuple(f"{folder}/{old}/" for folder in FOLDERS)):
            continue
        text = path.read_text()
        for folder in FOLDERS:
            text = text.replace(f"{folder}/{old}/", f"{folder}/{new}/")
            name = name.replace(f"{folder}/{old}/", f"{folder}/{new}/")
        for before, after in digests.items():
            text = text.replace(before, after)
        path.unlink()
        store._io_write(metadata, json.loads(text), name)


sys.excepthook = print_one_line
if __name__ == "__main__":
    main()

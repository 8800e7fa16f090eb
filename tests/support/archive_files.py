"""Archives as a user may have them."""

import io
import tarfile
import zipfile
from pathlib import Path


def pack(file: Path, files: dict[str, bytes]) -> Path:
    """A zip or tar file of these, as its name says."""
    if file.name.endswith(".zip"):
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return file
    with tarfile.open(file, "w" if file.name.endswith(".tar") else "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file

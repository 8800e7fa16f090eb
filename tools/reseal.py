"""Trust the files of artifacts/ and reports/ as they are: python tools/reseal.py [PREFIX].

A run refuses what no run of this folder has written. Run this in the folder of the project after
artifacts were brought from another one, were changed by hand, or after `.snakemake` was deleted:
every manifest, record and ONNX file there then counts as written here, and engines are native code.
Where another workflow imports this one as a module, PREFIX is that of the module.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from tightrope.artifacts.seals import FOLDERS, files_to_seal, make_secret, seal
from tightrope.jobs.job import print_one_line
from tightrope.plan.lock import take_folder


def main() -> None:
    """Seal every file that can be sealed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("prefix", nargs="?", type=Path, default=Path())
    prefix = parser.parse_args().prefix
    take_folder(slurm=False)
    make_secret()
    files = files_to_seal(prefix / folder for folder in FOLDERS)
    for path in files:
        seal(path)
    print(f"{len(files)} files of {' and '.join(FOLDERS)} count as written here")


sys.excepthook = print_one_line
if __name__ == "__main__":
    main()

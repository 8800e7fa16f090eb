"""The lease of a folder: one run at a time works in it, also from several hosts.

`.snakemake/run.lock` names the holder. The kernel's lock on this file (flock) decides on one host,
and between hosts where the file system shares it. Where it does not, the heartbeat decides: the
holder touches the file, and another host watches whether the time of the file changes. No two
clocks are compared, so that they may differ.
"""

import errno
import fcntl
import os
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tightrope.artifacts.files import cannot_be_written
from tightrope.errors import TightropeError
from tightrope.jobs.ended import CONTINUES
from tightrope.plan.holder import Holder, encoded, printable, read_holder, this_process
from tightrope.plan.holder import machine as this_machine

SNAKEMAKE = Path(".snakemake")
# a heartbeat takes some 15 microseconds of one processor, in the process of Snakemake
BEAT_SECONDS = 10.0
# a holder on another host that is silent for so long has ended
SILENCE_SECONDS = 60.0
POLL_SECONDS = 1.0
# the holder writes its name a moment after it has the kernel's lock
NAMED_SECONDS = 1.0
# errors of file systems that have no flock
NO_FLOCK = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL}


class Lease:
    """The right to work in a folder, until `release` or the end of this process.

    It is not `owned` where this process continues the run of the holder.
    """

    def __init__(self, path: Path, holder: Holder, descriptor: int | None) -> None:
        self.path = path
        self.holder = holder
        self.descriptor = descriptor
        self.released = threading.Event()

    @property
    def owned(self) -> bool:
        """Whether this process holds the lease itself."""
        return self.descriptor is not None

    def keep(self, seconds: float) -> None:
        """Touch the file every so many seconds, until `release`, in a thread of its own."""
        threading.Thread(target=self.beat, args=(seconds,), name="lease", daemon=True).start()

    def beat(self, seconds: float) -> None:
        """Touch the file until `release`; end this run where another one has taken the lease.

        Another host does so when this process was stopped for SILENCE_SECONDS, as by Ctrl-Z.
        """
        while not self.released.wait(seconds):
            other = read_holder(self.path)
            if other not in (None, self.holder):
                print(
                    f"{folder_of(self.path)}: this run was silent for too long and ends: another "
                    f"one has taken its place ({other})",
                    file=sys.stderr,
                )
                os.kill(os.getpid(), signal.SIGTERM)
                return
            with suppress(OSError):
                os.utime(self.path)

    def release(self) -> None:
        """Give the lease back: the file names nobody then, so that no host waits for a heartbeat.

        A lease that is not owned, or was taken over, is left as it is.
        """
        self.released.set()
        if self.descriptor is None:
            return
        with suppress(OSError):
            if read_holder(self.path) == self.holder:
                os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)
        self.descriptor = None


def take_lease(
    folder: Path | str = SNAKEMAKE,
    *,
    beat: float = BEAT_SECONDS,
    silence: float = SILENCE_SECONDS,
) -> Lease:
    """Return the lease of the folder; remove Snakemake's own locks, which a killed run leaves.

    `beat` and `silence` are in seconds. Raises TightropeError, which says who holds the lease, and
    StorageError where the file cannot be written.
    """
    path = Path(folder) / "run.lock"
    holder = continued_holder(path)
    if holder is not None:
        lease = Lease(path, holder, None)
    else:
        lease = Lease(path, *claimed(path, silence))
        lease.keep(beat)
    shutil.rmtree(path.parent / "locks", ignore_errors=True)
    return lease


def continued_holder(path: Path) -> Holder | None:
    """Return the holder where this process was started to continue its run, else None.

    The environment has to name the holder, and the holder has to be an ancestor that is alive.
    """
    holder = read_holder(path)
    if holder is None or os.environ.get(CONTINUES) != str(holder.pid):
        return None
    ancestors = {one.pid for one in psutil.Process().parents()}
    here = holder.is_visible and holder.is_running
    return holder if here and holder.pid in ancestors else None


def claimed(path: Path, silence: float) -> tuple[Holder, int]:
    """Write this process into the file; return it with the descriptor that holds the lock.

    Raises as `take_lease` does.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise cannot_be_written(path, error) from error
    try:
        require_free(path, locked=is_locked(descriptor, path), silence=silence)
        holder = this_process()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, encoded(holder), 0)
        # so that other hosts see it
        os.fsync(descriptor)
    except OSError as error:
        os.close(descriptor)
        raise cannot_be_written(path, error) from error
    except BaseException:
        os.close(descriptor)
        raise
    return holder, descriptor


def is_locked(descriptor: int, path: Path) -> bool:
    """Lock the file; return False where the file system has no locks.

    Raises TightropeError where another process has the lock.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise taken(path, named_holder(path)) from None
    except OSError as error:
        if error.errno not in NO_FLOCK:
            raise
        return False
    return True


def require_free(path: Path, *, locked: bool, silence: float) -> None:
    """Raise TightropeError where the holder that the file names is alive.

    `locked` says that this process has the kernel's lock, so no other process under this kernel
    has it. Whether a holder elsewhere is alive takes up to `silence` seconds to see.
    """
    holder = read_holder(path)
    if holder is None or (locked and holder.machine == this_machine()):
        return
    if holder.is_visible:
        if holder.is_running:
            raise taken(path, holder)
        return
    print(
        f"{folder_of(path)}: {holder} did not give this folder back; waiting up to {silence:.0f} s "
        "to see whether it is alive",
        file=sys.stderr,
    )
    if is_touched(path, silence):
        raise taken(path, read_holder(path))


def is_touched(path: Path, seconds: float) -> bool:
    """Return whether the file is touched within so many seconds, and still names a holder."""
    first = modified(path)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(min(POLL_SECONDS, seconds / 10))
        if modified(path) != first:
            return read_holder(path) is not None
    return False


def modified(path: Path) -> int | None:
    """Return the file's time in ns, as its server has it: a network file system asks on opening."""
    try:
        with path.open("rb") as stream:
            return os.fstat(stream.fileno()).st_mtime_ns
    except OSError:
        return None


def named_holder(path: Path) -> Holder | None:
    """Return the holder of a locked file once the file names it, None where it does not."""
    deadline = time.monotonic() + NAMED_SECONDS
    while time.monotonic() < deadline:
        holder = read_holder(path)
        if holder is not None and (holder.is_running or not holder.is_visible):
            return holder
        time.sleep(NAMED_SECONDS / 20)
    return None


def taken(path: Path, holder: Holder | None) -> TightropeError:
    """Return the error of a run that finds the folder taken."""
    folder = folder_of(path)
    if holder is None:
        return TightropeError(
            f"{folder}: another process works in this folder; wait until it has ended, or work in "
            "a copy of the folder. Nothing was changed"
        )
    return TightropeError(
        f"{folder}: a run works in this folder already ({holder}); wait until it has ended, or end "
        f"it on {printable(holder.host)} with: kill {holder.pid}. Nothing was changed"
    )


def folder_of(path: Path) -> Path:
    """Return the folder whose lease the file is."""
    return path.absolute().parents[1]

"""Who holds the lease of a folder: a process of a user on a host."""

import getpass
import os
import platform
import sys
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
NAMESPACE = Path("/proc/self/ns/pid")
# states of a process that has ended, in /proc/<pid>/stat
ENDED = (b"Z", b"X")
MOST_CHARACTERS = 200


@dataclass(frozen=True)
class Holder:
    """The process that holds a lease.

    `machine` names the running kernel, `namespace` the processes among which `pid` is unique.
    `started` is in clock ticks since boot: another process with the same id has another one.
    """

    user: str
    host: str
    machine: str
    namespace: str
    pid: Annotated[int, msgspec.Meta(gt=0)]
    started: int
    command: str
    began: str

    @property
    def is_visible(self) -> bool:
        """Whether `pid` means the same process here as where it was written."""
        return (self.machine, self.namespace) == (machine(), namespace())

    @property
    def is_running(self) -> bool:
        """Whether the process is alive; only meaningful where it is visible."""
        return start_of(self.pid) == self.started

    def __str__(self) -> str:
        words = f"{self.user}@{self.host}, process {self.pid}, since {self.began}: {self.command}"
        return printable(words)


def this_process() -> Holder:
    """Describe this process."""
    pid = os.getpid()
    return Holder(
        user=printable(user_name()),
        host=printable(platform.node()),
        machine=machine(),
        namespace=namespace(),
        pid=pid,
        started=start_of(pid) or 0,
        command=printable(command_line(sys.argv)),
        began=datetime.now().astimezone().isoformat(sep=" ", timespec="seconds"),
    )


def encoded(holder: Holder) -> bytes:
    """Return the holder as JSON."""
    return msgspec.json.format(msgspec.json.encode(asdict(holder)), indent=1) + b"\n"


def read_holder(path: Path) -> Holder | None:
    """Return the holder that the file names; None where it is missing, empty or damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holder)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return None


def start_of(pid: int) -> int | None:
    """Return when the process started, in clock ticks since boot; None where it is not alive."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in ENDED else int(fields[19])


def machine() -> str:
    """Return the id of the running kernel, which every boot changes, else the name of the host."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return platform.node()


def namespace() -> str:
    """Return the id of the process namespace, `""` where the kernel does not name it."""
    try:
        return str(NAMESPACE.readlink())
    except OSError:
        return ""


def user_name() -> str:
    """Return the name of the user, or the number where no name belongs to it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def command_line(words: list[str]) -> str:
    """Return a command line with the name of its program alone, not its folder."""
    program = Path(words[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return " ".join([name, *words[1:]])


def printable(text: str) -> str:
    """Return the text in one line of at most MOST_CHARACTERS, without control characters."""
    shown = "".join(one if one.isprintable() else " " for one in text)
    return shown if len(shown) <= MOST_CHARACTERS else shown[: MOST_CHARACTERS - 1] + "…"

"""Keep a Slurm cluster of two nodes of two types on this host, in one folder, without systemd.

`python slurm_keeper.py FOLDER OWNER`: munge, slurmctld and two slurmd are its children, and it ends
them, their jobs and the folder when the process OWNER has ended, however that ended. Killed itself,
it takes the daemons with it. Nothing outside the folder is written: programs of Slurm find their
configuration through scripts in its `bin`, which comes first in PATH.

Without accounting (slurmdbd): Snakemake asks `squeue`, so that `sacct` is not tested here.
"""

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

CLIENTS = (
    "sacct",
    "sacctmgr",
    "sbatch",
    "scancel",
    "scontrol",
    "sinfo",
    "squeue",
    "srun",
    "sshare",
)
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# the two types; no job of the tests needs what it asks for, so any host has such nodes
NODES = {"n1": "CPUs=2 RealMemory=6000 Feature=small", "n2": "CPUs=4 RealMemory=8000 Feature=large"}
CONF = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
MailProg=/bin/true
# no cgroups: the memory of a job is what its processes have, looked at each second
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobs.txt
MinJobAge=3600
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
EnforcePartLimits=ANY
JobRequeue=1
KillWait=2
CompleteWait=0
# a node that a test makes DOWN stays so
ReturnToService=1
SlurmctldTimeout=60
SlurmdTimeout=120
SlurmdParameters=config_overrides
{nodes}
PartitionName=main Nodes=n1,n2 Default=YES MaxTime=120 DefaultTime=10 State=UP
PartitionName=short Nodes=n2 MaxTime=5 State=UP
"""


def free_ports(count: int) -> list[int]:
    """Ports that no process listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def write_files(folder: Path) -> None:
    """Write the configuration, the key of munge and scripts for the programs of Slurm."""
    for name in ("munge", "state", "bin", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir()
    key = folder / "munge/key"
    key.touch(0o600)
    key.write_bytes(secrets.token_bytes(128))
    port, *ports = free_ports(1 + len(NODES))
    host = socket.gethostname().partition(".")[0]
    nodes = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={own} {facts} State=UNKNOWN"
        for (name, facts), own in zip(NODES.items(), ports, strict=True)
    )
    text = CONF.format(host=host, port=port, folder=folder, nodes=nodes)
    (folder / "slurm.conf").write_text(text)
    for name in CLIENTS:
        # no variable alone: inside a job the executor plugin takes every SLURM_* from srun
        script = folder / "bin" / name
        script.write_text(
            f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which(name)} "$@"\n'
        )
        script.chmod(0o755)


def start_daemons(folder: Path) -> None:
    """Start the daemons as children that die with this process."""
    munge = ("--foreground", "--force", "--num-threads=2", f"--key-file={folder}/munge/key")
    names = {"socket": "socket", "pid-file": "pid", "seed-file": "seed", "log-file": "log"}
    munge += tuple(f"--{option}={folder}/munge/{name}" for option, name in names.items())
    start(folder, "munge", "munged", *munge)
    while not (folder / "munge/socket").exists():
        time.sleep(0.05)
    conf = ("-D", "-f", f"{folder}/slurm.conf")
    start(folder, "slurmctld", "slurmctld", *conf)
    for node in NODES:
        start(folder, node, "slurmd", *conf, "-N", node)


def start(folder: Path, name: str, *words: str) -> None:
    """Start one daemon, its output in `{name}.log`."""

    def die_with_parent() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    with (folder / f"{name}.log").open("w") as log:
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent
        )


def keep(folder: Path, owner: int) -> None:
    """Keep a cluster until the process `owner` has ended, then leave nothing of it."""
    # steps of jobs leave their slurmd: so they stay descendants of this process
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        write_files(folder)
        start_daemons(folder)
        process = psutil.Process(owner)
        with suppress(psutil.NoSuchProcess):
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.2)
    finally:
        while children := psutil.Process().children(recursive=True):
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
            with suppress(ChildProcessError):
                os.waitpid(-1, 0)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    keep(Path(sys.argv[1]), int(sys.argv[2]))

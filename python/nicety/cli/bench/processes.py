"""The processes of one command that an MPI launcher has started several times."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nicety.cli.output import is_collected, note
from nicety.errors import InputError

if TYPE_CHECKING:
    from nicety import _native

_STARTED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
"""Environment variables of MPI launchers; the value is the number of processes."""
_LOOKS = 32
"""Number of polls for messages after which a process sleeps briefly between polls."""


class Silent(SystemExit):
    """Exits with a status and without a message: another process reports the error."""

    silent = True


@contextlib.contextmanager
def processes(*, spread: bool, what: str = "") -> Iterator[bool]:
    """Run the block in one process or in all processes of the command.

    Without other processes, the block runs once. With `spread` all processes run it; otherwise only the first one runs
    it, and the others wait. The block gets whether its process is the first. Only the first process continues after the
    block. If several processes have an error, the first of them reports it.

    Args:
        spread: whether the block's simulations are spread over the processes.
        what: the command's name, for a note that it is not spread.

    Raises:
        InputError: there are several processes without an MPI library to connect them, or they run different commands.
        Silent: this process must exit, since another process reports an error or writes the command's result.
    """
    # Each process of a study runs other points, and runs these alone.
    world = None if is_collected() else _world()
    if world is None:
        yield True
        return
    from nicety import _native

    is_first = world.rank == 0
    own = _native.Peers(world.rank, world.size, _Exchange(world))
    if spread:
        own.begin()
    elif is_first:
        note(f"{what} is not spread over processes; {world.size - 1} of {world.size} have nothing to do")
    told = contextlib.ExitStack()
    if not is_first:
        # All processes have the same messages; the first process prints them.
        told.enter_context(contextlib.redirect_stdout(io.StringIO()))
        told.enter_context(contextlib.redirect_stderr(io.StringIO()))
    try:
        with told:
            # If the work is not spread, the other processes wait below for the first one, and exit.
            if spread or is_first:
                yield is_first
    except BaseException as error:
        first, status = _leave(own, _status(error))
        if first == world.rank:
            raise
        raise Silent(status) from None
    _, status = _leave(own, 0)
    if status or not is_first:
        raise Silent(status)


def _status(error: BaseException) -> int:
    """Return the exit status of a command that ends with an error."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt):
        return 128 + signal.SIGINT
    return 2 if isinstance(error, InputError | UnicodeEncodeError) else 1


def _leave(own: _native.Peers, status: int) -> tuple[int, int]:
    """Exchange exit statuses with all processes. Return the first process with an error and its status, or (0, 0)."""
    # Ctrl-C interrupts all processes at once. Those that already wait here must wait until the others end.
    ends = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ends}
    try:
        statuses = own.leave(status)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return next(((rank, status) for rank, status in enumerate(statuses) if status), (0, 0))


def _world() -> Any:
    """Return MPI's communicator of all processes, or None if there is a single process."""
    started = max(int(os.environ.get(name, "1")) for name in _STARTED)
    if started == 1:
        return None
    if find_spec("mpi4py") is None:
        raise InputError(
            f"{started} processes were started by MPI, and Python has none to connect them; pip install 'nicety[mpi]'"
        )
    from nicety import _native

    mpi = import_module("mpi4py.MPI")
    world = mpi.COMM_WORLD
    if world.size != started:
        raise InputError(
            f"{started} processes were started, but the MPI of mpi4py reports {world.size}: it differs from the MPI "
            "of mpiexec; install mpi4py for the MPI of mpiexec"
        )
    commands = world.allgather((_native.version(), sys.argv[1:]))
    other = next((rank for rank, command in enumerate(commands) if command != commands[0]), None)
    if other is not None:
        if world.rank > 0:
            raise Silent(2)
        raise InputError(
            f"process {other} runs another command or version of nicety than process 0; start the same command and "
            "version"
        )
    if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
        if world.rank > 0:
            raise Silent(2)
        raise InputError("this MPI cannot be called from another thread than the first; use an MPI built with threads")
    return world


class _Exchange:
    """Exchanges bytes between all processes."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self._mpi = import_module("mpi4py.MPI")

    def __call__(self, given: list[bytes]) -> list[bytes]:
        world, mpi = self._world, self._mpi
        others = [rank for rank in range(world.size) if rank != world.rank]
        sent = [world.Isend([given[rank], mpi.BYTE], rank) for rank in others]
        taken = [b""] * world.size
        status = mpi.Status()
        looks = 0
        while others:
            for rank in list(others):
                message = world.Improbe(rank, status=status)
                if message is not None:
                    came = bytearray(status.Get_count(mpi.BYTE))
                    message.Recv([came, mpi.BYTE])
                    taken[rank] = bytes(came)
                    others.remove(rank)
            looks += 1
            # If there are more processes than cores, another process needs this core.
            if looks > _LOOKS:
                time.sleep(2e-5)
        mpi.Request.Waitall(sent)
        return taken

"""The processes of a command that MPI has started several times, at once."""

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
from typing import Any

from nicety.cli.output import is_collected, note
from nicety.errors import Error, InputError

_STARTED = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
"""What launchers of MPI say of their processes: their number."""
_INTERRUPTED = 128 + signal.SIGINT
_LOOKS = 32
"""How often a process looks whether messages have come before it lets others run."""
_BROKEN = 70
"""The status of a process with an error of nicety's own."""


@contextlib.contextmanager
def processes(*, spread: bool, what: str = "") -> Iterator[None]:
    """Share the block with the other processes of the command, if there are any.

    All enter it, with the same command, and only the first one goes on behind it. Of an error that several have, the
    first that has it tells it, and the others leave by SystemExit.

    Args:
        spread: whether the block's simulations are spread over the processes; if not, the first one enters it alone.
        what: the command, in a note that it is not spread.

    Raises:
        InputError: there are several processes, but no MPI to connect them, or not of the same command.
    """
    # The processes of a study have points of their own to run.
    world = None if is_collected() else _world()
    if world is None:
        yield
        return
    from nicety import _native

    own = _native.Peers(world.rank, world.size, _Exchange(world))
    if spread:
        own.begin()
    elif world.rank == 0:
        note(f"{what} is not spread over processes; {world.size - 1} of {world.size} have nothing to do")
    try:
        # What several would say, the first one says.
        with contextlib.redirect_stderr(io.StringIO()) if world.rank > 0 else contextlib.nullcontext():
            # Who has nothing to do waits for the first one, and leaves.
            if spread or world.rank == 0:
                yield
    except BaseException as error:
        first, status = _first(own.leave(_status(error)))
        if first == world.rank:
            raise
        raise SystemExit(1 if status == _INTERRUPTED else status) from None
    _, status = _first(own.leave(0))
    if status or world.rank > 0:
        raise SystemExit(status)


def _first(statuses: list[int | None]) -> tuple[int, int]:
    """The first process that has left with an error, and its status; 0 of process 0 if none has."""
    return next(((rank, status) for rank, status in enumerate(statuses) if status), (0, 0))


def _status(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED
    if isinstance(error, InputError):
        return 2
    return 1 if isinstance(error, Error | OSError) else _BROKEN


def _world() -> Any:
    """All processes, if there are several."""
    started = max(int(os.environ.get(name, "1")) for name in _STARTED)
    if started == 1:
        return None
    if find_spec("mpi4py") is None:
        raise InputError(
            f"{started} processes were started by MPI, and Python has none to connect them; pip install 'nicety[mpi]'"
        )
    from nicety import _native

    world = import_module("mpi4py.MPI").COMM_WORLD
    if world.size != started:
        raise InputError(
            f"{started} processes were started, and the MPI of mpi4py knows of {world.size}: it is another one than "
            "that of mpiexec; install mpi4py for that one"
        )
    commands = world.allgather((_native.version(), sys.argv[1:]))
    other = next((rank for rank, command in enumerate(commands) if command != commands[0]), None)
    if other is not None:
        if world.rank > 0:
            raise SystemExit(2)
        raise InputError(f"process {other} runs another command or version of nicety than process 0; start the same")
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
            # Where processes are more than cores, another one is to go on.
            if looks > _LOOKS:
                time.sleep(2e-5)
        mpi.Request.Waitall(sent)
        return taken

"""Executors by name: ranks of MPI, a cluster of Dask, a cluster of Ray."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from nicety.errors import InputError, RunError

_T = TypeVar("_T")
_PACKAGES = {"mpi": "mpi4py", "dask": "distributed", "ray": "ray"}
_CONNECT_S = 10


class RayExecutor(Executor):
    """Runs tasks on the cluster to which Ray is connected, or on this machine.

    Args:
        address: the cluster's address, as for `ray.init`. By default Ray's existing connection is used.
    """

    def __init__(self, address: str | None = None) -> None:
        ray = import_module("ray")
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        self._cancel, self._wait = ray.cancel, ray.wait
        self._call = ray.remote(_call)
        self._running: set[Any] = set()

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Call a function on the cluster."""
        reference = self._call.remote(fn, args, kwargs)
        self._running.add(reference)
        future: Future[_T] = reference.future()
        future.add_done_callback(lambda _: self._running.discard(reference))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop accepting tasks. Ray itself keeps running."""
        left = list(self._running)
        if cancel_futures:
            for reference in left:
                self._cancel(reference)
        elif wait and left:
            self._wait(left, num_returns=len(left))


def _call(fn: Callable[..., _T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _T:
    return fn(*args, **kwargs)


@contextlib.contextmanager
def open_executor(name: str | None) -> Iterator[Executor | None]:
    """Make an executor by name for the duration of the block.

    `mpi` uses the ranks of MPI's world. All ranks call this function, and only rank 0 enters the block. During the
    block the other ranks run tasks; after it they exit by SystemExit.

    Args:
        name: `mpi`, `dask:ADDRESS`, `ray` or `ray:ADDRESS`. With None the block gets None.

    Raises:
        InputError: the name is none of these, or its package is not installed.
        RunError: the cluster is not reachable.
    """
    if name is None:
        yield None
        return
    kind, _, address = name.partition(":")
    if kind not in _PACKAGES or (kind == "dask" and not address) or (kind == "mpi" and address):
        raise InputError(f"--executor {name}: write mpi, dask:ADDRESS, ray or ray:ADDRESS")
    package = _PACKAGES[kind]
    if find_spec(package) is None:
        raise InputError(
            f"--executor {name}: this needs {package}, which is not installed; pip install 'nicety[{kind}]'"
        )
    with contextlib.ExitStack() as opened:
        try:
            executor = opened.enter_context(_OPEN[kind](address))
        except (OSError, ValueError) as error:
            raise RunError(f"--executor {name}: cannot connect ({error})") from error
        yield executor


@contextlib.contextmanager
def _mpi(_address: str) -> Iterator[Executor]:
    world = import_module("mpi4py.MPI").COMM_WORLD
    with import_module("mpi4py.futures").MPICommExecutor(world, root=0) as executor:
        if executor is not None:
            yield executor
    if executor is None:
        raise SystemExit(0)


@contextlib.contextmanager
def _dask(address: str) -> Iterator[Executor]:
    with import_module("distributed").Client(address, timeout=_CONNECT_S) as client:
        yield client.get_executor(pure=False)


@contextlib.contextmanager
def _ray(address: str) -> Iterator[Executor]:
    yield RayExecutor(address or None)


_OPEN = {"mpi": _mpi, "dask": _dask, "ray": _ray}

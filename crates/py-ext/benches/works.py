"""The works to measure and profile. Each has a command, its units of work, and the same work on other simulators.

A command contains `{python}`, an interpreter with nicety; `{benches}`, this folder; and `{n}`, a size. It runs in a
folder of its own, after `prepare`. `{torus}` is a benchmark in Rust.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BENCHES = Path(__file__).parent
NICETY = "{python} -m nicety"
MPICC = "mpicc -O2 -o mpi {benches}/mpi.c"
CALLS = "{python} -c 'import sys; sys.path.insert(0, \"{benches}\"); import calls; calls.%s'"
SOURCES = {
    "drop.c": "#include <nicety.h>\n"
    "__handler int payload_handler(const ptl_payload_t p, void *state) { return DROP; }\n",
    "frame.c": "#include <frame.h>\n"
    "__handler int frame_handler(const frame_t *frame, void *state) { return FRAME_DROP; }\n",
    "pspin.c": "#include <handler.h>\n"
    "__handler__ void empty_ph(handler_args_t *args) { (void)args; }\n"
    "void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {\n"
    "    *hh = NULL;\n    *ph = empty_ph;\n    *th = NULL;\n    *memory = NULL;\n}\n",
}


def drop(source: str, nic: str) -> str:
    """Return a command that passes `n` packets of 64 B to a handler, at a tenth of the wire's rate."""
    return f"{NICETY} bench handlers {source} --nic {nic} --traffic 'udp size=64 rate=10Gbps packets={{n}}' --json"


def once(_: int) -> float:
    """Return the units of a command that is measured as a whole."""
    return 1.0


@dataclass(frozen=True)
class Work:
    """A command at two sizes. A unit costs their difference, divided by the number of units between them.

    Without a smaller size, the whole command is the unit.
    """

    command: str
    count: int
    small: int | None = None
    unit: str = "command"
    # None: the last word that the command prints.
    units: Callable[[int], float] | None = once
    prepare: str = ""
    # The names of works of other simulators, in peers.py.
    peers: tuple[str, ...] = ()
    # Takes more than a minute.
    slow: bool = False


def ring(ranks: int) -> float:
    """Return the number of messages of a ring-allreduce."""
    return 2.0 * ranks * (ranks - 1)


WORKS = {
    "exec-pingpong": Work(
        f"{NICETY} exec -n 2 --nic spin-discrete -- ./mpi ping-pong {{n}}",
        20_000, 1000, "message", lambda n: 2 * n, MPICC, ("smpi-pingpong",),
    ),
    "exec-alltoall": Work(
        f"{NICETY} exec -n 64 --nic spin-discrete -- ./mpi alltoall {{n}}",
        10, None, "command", once, MPICC, ("smpi-alltoall",),
    ),
    "goal-ring-small": Work(
        f"{NICETY} goal run ring-{{n}}.goal --nic spin-discrete --topology fat-tree:16",
        256, 64, "message", ring,
        f"{NICETY} goal generate ring-allreduce --ranks {{n}} --size 1Ki -o ring-{{n}}.goal",
    ),
    "goal-ring": Work(
        f"{NICETY} goal run ring-{{n}}.goal --nic spin-discrete",
        256, 16, "MiB", float,
        f"{NICETY} goal generate ring-allreduce --ranks 16 --size {{n}}Mi -o ring-{{n}}.goal",
    ),
    "goal-loggops": Work(
        f"{NICETY} goal run all-{{n}}.goal --L 1us --o 200ns --g 100ns --G 0.04ns",
        100, 10, "message", lambda n: 128.0 * 127 * n,
        f"{NICETY} goal generate linear-alltoall --ranks 128 --size 8 --iterations {{n}} -o all-{{n}}.goal",
        ("loggopsim",),
    ),
    "goal-permutation": Work(
        f"{NICETY} goal run permutation-{{n}}.goal --nic spin-discrete --topology fat-tree:16",
        1 << 18, 1 << 16, "MiB", lambda n: 1024.0 * n / 2**20,
        "{python} {benches}/permutation.py {n}",
        ("htsim",), slow=True,
    ),
    "goal-start": Work(
        f"{NICETY} goal run small-{{n}}.goal --json", 4,
        prepare=f"{NICETY} goal generate ring-allreduce --ranks {{n}} --size 8 -o small-{{n}}.goal",
    ),
    "help": Work(f"{NICETY} --help", 1),
    "bench-latency": Work(f"{NICETY} bench latency --nic spin-discrete", 1),
    "handlers-discrete": Work(drop("drop.c", "spin-discrete"), 600_000, 200_000, "packet", float),
    "handlers-drop": Work(drop("frame.c", "spin-100g"), 600_000, 200_000, "packet", float),
    "handlers-pspin": Work(drop("pspin.c", "pspin"), 600_000, 200_000, "packet", float),
    "handlers-sensitivity": Work(drop("frame.c", "spin-100g") + " --sensitivity", 10_000),
    "frames-stream": Work(
        f"{NICETY} bench stream --nic niagara2-neptune --connections 32 --duration {{n}}ms",
        60, 20, "simulated second", lambda n: n / 1000, "", ("ns3-tcp",), slow=True,
    ),
    "rdma-bandwidth": Work(
        f"{NICETY} bench bandwidth --nic spin-discrete --mode rdma --sizes 1Mi --iterations {{n}}",
        100, 10, "iteration", float,
    ),
    "python-pingpong": Work(
        CALLS % "ping_pong({n})", 40_000, 2000, "message", lambda n: 2 * n, "", ("simgrid-pingpong",),
    ),
    "python-alltoall": Work(CALLS % "all_to_all({n})", 256, 64, "message", lambda n: float(n * n)),
    "torus-64": Work("{torus} 4 {n}", 26_000_000, 2_600_000, "router", None, "", ("booksim-64",)),
    "torus-4096": Work("{torus} 16 {n}", 250_000, 25_000, "router", None, "", ("booksim-4096",)),
    "python-idle": Work(CALLS % "idle({n})", 4096, 64, "node", float),
}  # fmt: skip

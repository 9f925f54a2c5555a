"""The works on other simulators: their commands, and whether these simulators are installed.

SimGrid (libsimgrid-dev) and ns-3 (libns3-dev) are packages of Debian. They are found by a command in PATH or by a
header. Other simulators are programs in a folder that the user names, at any depth: LogGOPSim with txt2bin,
booksim, and htsim_ndp.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from simgrid import MODEL, OVERHEAD_NS, PLATFORM
from works import BENCHES, WORKS, Work

CXX = os.environ.get("CXX", "c++")
CONFIG = " ".join(f"--cfg={each}" for each in MODEL)
SMPI = f"smpirun -np {{ranks}} -hostfile hosts -platform star.xml {CONFIG} --cfg=smpi/simulate-computation:no ./smpi"
SMPICC = f"smpicc -O2 -o smpi {BENCHES}/mpi.c"
# A torus of three dimensions at about half of its saturation load, with packets of one flit.
BOOKSIM = """topology = torus; k = {side}; n = 3; routing_function = dim_order; num_vcs = 2; traffic = uniform;
injection_rate = {rate}; packet_size = 1; sim_type = throughput; warmup_periods = 0; max_samples = 1;
print_activity = 0;
"""
# Router traversals: packets accepted by a node and cycle, by nodes, by cycles, by the routers of a mean packet.
TRAVERSALS = "awk '/Accepted packet rate average =/ {{r = $6}} END {{print r * %d * {n} * %d}}'"


@dataclass(frozen=True)
class Peer:
    """A work on another simulator. Its command may contain `{program}`, and `{n}` as in nicety's work."""

    title: str
    # A command in PATH, a header, or a program in the user's folder.
    needs: str
    work: str
    command: str
    prepare: str = ""
    # The sizes, if they differ from those of nicety's work.
    count: int | None = None
    small: int | None = None


def booksim(side: int, rate: float, cycles: int) -> Peer:
    """Return a work on booksim: a torus of `side` routers in each dimension, for `cycles` cycles.

    The mean packet crosses 3 / 4 `side` links.
    """
    text = BOOKSIM.format(side=side, rate=rate)
    return Peer(
        "BookSim", "booksim", f"torus-{side**3}",
        f"{{program}} torus-{side}-{{n}} | {TRAVERSALS % (side**3, 3 * side // 4 + 1)}",
        f"printf '%s sample_period = {{n}};\\n' '{text}' > torus-{side}-{{n}}",
        cycles, cycles // 10,
    )  # fmt: skip


PEERS = {
    "smpi-pingpong": Peer(
        "SMPI", "smpirun", "exec-pingpong", f"{SMPI.format(ranks=2)} ping-pong {{n}}", SMPICC
    ),
    "smpi-alltoall": Peer(
        "SMPI", "smpirun", "exec-alltoall", f"{SMPI.format(ranks=64)} alltoall {{n}}", SMPICC
    ),
    "simgrid-pingpong": Peer(
        "SimGrid", "simgrid/s4u.hpp", "python-pingpong",
        f"./simgrid star.xml ping-pong 2 64 {{n}} {OVERHEAD_NS}e-9 {CONFIG} --log=root.thresh:warning",
        f"{CXX} -std=c++17 -O2 -Wno-deprecated-declarations {BENCHES}/simgrid.cpp -lsimgrid -o simgrid",
    ),
    "loggopsim": Peer(
        "LogGOPSim", "LogGOPSim", "goal-loggops",
        "{program} -f all-{n}.bin -b -L 1000 -o 200 -g 100 -G 0",
        f"{WORKS['goal-loggops'].prepare} && {{beside}}/txt2bin -i all-{{n}}.goal -o all-{{n}}.bin",
        10, 2,
    ),
    # 400 Gb/s as the links of spin-discrete; NDP, so that no packet is lost.
    "htsim": Peer(
        "htsim", "htsim_ndp", "goal-permutation",
        "{program} -nodes 1024 -tm permutation-{n}.cm -linkspeed 400000 -mtu 4096 -strat ecmp_host -paths 16 "
        "-end 100000",
    ),
    "ns3-tcp": Peer(
        "ns-3", "ns3/core-module.h", "frames-stream", "./tcp {n}",
        f"{CXX} -std=c++17 -O2 {BENCHES}/ns3.cpp -lns3-core -lns3-network -lns3-internet -lns3-point-to-point "
        "-lns3-applications -o tcp",
    ),
    "booksim-64": booksim(4, 0.25, 20_000),
    "booksim-4096": booksim(16, 0.06, 600),
}  # fmt: skip


def missing(peer: Peer, folder: Path | None) -> str | None:
    """Return the reason why a work cannot run here, or None."""
    if peer.needs.endswith((".h", ".hpp")):
        words = [CXX, "-x", "c++", "-E", "-"]
        include = f"#include <{peer.needs}>\n"
        found = (
            shutil.which(CXX)
            and not subprocess.run(words, input=include, capture_output=True, text=True, check=False).returncode
        )
        return None if found else f"{CXX} finds no {peer.needs}"
    if shutil.which(peer.needs) or program(peer, folder):
        return None
    return f"no {peer.needs} in PATH" + (f", and none in {folder}" if folder else "; --peers names its folder")


def program(peer: Peer, folder: Path | None) -> Path | None:
    """Return the path of the peer's program in the folder of the user."""
    found = folder.rglob(peer.needs) if folder else ()
    return next((path for path in sorted(found) if path.is_file() and os.access(path, os.X_OK)), None)


def platform(folder: Path) -> None:
    """Write the files that SimGrid's works read."""
    folder.joinpath("star.xml").write_text(PLATFORM % 63)
    folder.joinpath("hosts").write_text("".join(f"{host}\n" for host in range(64)))


def work_of(peer: Peer, folder: Path | None) -> Work:
    """Return the work with the peer's command, and with the sizes and units of nicety's work."""
    own, found = WORKS[peer.work], program(peer, folder)
    names = {"{program}": str(found or peer.needs), "{beside}": str(found.parent) if found else "."}
    command, prepare = peer.command, peer.prepare
    for name, value in names.items():
        command, prepare = command.replace(name, value), prepare.replace(name, value)
    count, small = (peer.count or own.count), (peer.small or own.small)
    return Work(command, count, small, own.unit, own.units, prepare)

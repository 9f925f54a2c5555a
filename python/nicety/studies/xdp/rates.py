"""Rates, CPU loads and latencies of XDP programs in a host's driver, on the paper's server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nicety._generated.types import XdpRow
from nicety.bench.xdp import bench_xdp
from nicety.build.xdp import compile_xdp
from nicety.studies.claims import Ours
from nicety.studies.study import Measured, Options

CARD = "ethernet-100g"
PROGRAMS = ("drop", "send", "forward")
"""The programs of `paths.c`, by the action of a frame."""
_FLOWS = "src=10.0.0.0/8 flows=4Ki"
"""As many flows as spread evenly over six cores."""
_CORES = range(1, 7)
_RINGS = ("receive.entries=256",)
"""Rings of the paper's figures of sent and redirected frames."""
_PORTS = '[{"key": 0, "value": 1}]'
_RATES = (1, 2, 5, 10, 15, 20)

_FETCHES = "one fetch of 16 descriptors follows another (transmit.fetch, assumed); real cards have several in flight"
_BUS = "PCI Express limits; the measured limit is lower than that of its packets and headers"
_SENT = "a sent frame costs more than the two functions that transmit assumes"
_REDIRECTED = "redirect is fifteen assumed functions"
_LOAD = "an interrupt, and a poll of few frames, cost more than the model's instructions"
_ASLEEP = "the model has no wake-up time of a sleeping core"


def measure_xdp(
    program: str,
    *,
    nic: str | None = None,
    cpus: Sequence[int] = (1,),
    size: int = 60,
    traffic: str = "packets=30k",
    lossy: bool = True,
    overrides: Sequence[str] = (),
    seed: int = 1,
) -> list[XdpRow]:
    """Run one of the programs in the driver of a card's host.

    Args:
        program: a name of `PROGRAMS`.
        nic: the card; by default the paper's server.
        cpus: the numbers of cores, each a row.
        size: bytes of a frame without its check sequence.
        traffic: further words of the traffic's expression.
        lossy: whether frames may be lost.
        overrides: changes to the card.
        seed: the seed of every random stream.
    """
    with ExitStack() as stack:
        testbed = stack.enter_context(as_file(files("nicety.studies.xdp") / "testbed.toml"))
        target = Path(stack.enter_context(TemporaryDirectory())) / "paths.o"
        target.write_bytes(_object())
        maps: Mapping[str, Any] = {"ports": _PORTS} if program == "forward" else {}
        return bench_xdp(
            target,
            nics=[nic or str(testbed)],
            program=program,
            cpus=list(cpus),
            traffic=f"udp size={size} {_FLOWS} {traffic}",
            lossy=lossy,
            maps=maps,
            overrides=list(overrides),
            seed=seed,
        )["rows"]


@cache
def _object() -> bytes:
    """Return the programs as an eBPF object."""
    with as_file(files("nicety.studies.xdp") / "paths.c") as source, TemporaryDirectory() as folder:
        return compile_xdp(source, output=Path(folder) / "paths.o").read_bytes()


def _rates(options: Options, program: str, why: Mapping[int, str], overrides: Sequence[str] = ()) -> Measured:
    rows = measure_xdp(program, cpus=_CORES, overrides=overrides, seed=options.seed)
    ours = {
        f"{program}-{row['cpus']}": Ours(round(row["taken_pps"] / 1e6, 2), why=why.get(row["cpus"], "")) for row in rows
    }
    return Measured(ours, data={program: {"rows": rows}})


def dropped(options: Options) -> Measured:
    """Measure the rates of frames that the program drops."""
    phases = "in the model each core has the rate of one; the measured cores differ a little"
    return _rates(options, "drop", {2: phases, 3: phases} | dict.fromkeys((4, 5, 6), _BUS))


def sent(options: Options) -> Measured:
    """Measure the rates of frames that leave by the port of their arrival."""
    return _rates(options, "send", {1: _SENT} | dict.fromkeys(range(2, 7), _FETCHES), _RINGS)


def redirected(options: Options) -> Measured:
    """Measure the rates of frames that are redirected to a port."""
    why = dict.fromkeys((1, 2, 3), _REDIRECTED) | dict.fromkeys((4, 5, 6), _FETCHES)
    return _rates(options, "forward", why, _RINGS)


def load(options: Options) -> Measured:
    """Measure the load of a core that drops frames below its highest rate."""
    ours = {}
    for rate in _RATES:
        (row,) = measure_xdp("drop", traffic=f"packets=20k rate={rate}Mpps", lossy=False, seed=options.seed)
        busy = next(part["load"] for part in row["parts"] if part["part"] == "CPU 0")
        ours[f"load-{rate}"] = Ours(round(100 * busy, 1), why=_LOAD)
    return Measured(ours)


def latency(options: Options) -> Measured:
    """Measure the latency of redirected frames, at a high and a low rate."""
    runs = {"latency-fast": ("packets=20k rate=1Mpps", ""), "latency-slow": ("packets=50 rate=100pps", _ASLEEP)}
    ours = {}
    for name, (traffic, why) in runs.items():
        (row,) = measure_xdp("forward", traffic=traffic, lossy=False, seed=options.seed)
        ours[name] = Ours(round(row["latency"]["mean_ns"] / 1e3, 2), why=why)
    return Measured(ours)

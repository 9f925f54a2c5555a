"""Rates and rows of XDP programs on hXDP's card."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nicety import _native
from nicety.bench.line_rate import check_line_rate
from nicety.build.card import XdpProgram
from nicety.build.xdp import compile_xdp
from nicety.errors import InputError
from nicety.studies.claims import UNMEASURED, Ours
from nicety.studies.study import Measured, Options

CARD = "hxdp-sume"
DUMPS = "NICETY_HXDP_DUMPS"
"""The variable with the folder of the paper's bytecode."""
FIREWALL = "nec_udp_firewall"
"""The dump of the simple firewall."""
TABLE = {
    "xdp1": "xdp1",
    "xdp2": "xdp2",
    "xdp_adjust_tail": "adjust-tail",
    "xdp_router_ipv4": "router",
    "xdp_rxq_info": "rxq-info",
    "xdp_tx_iptunnel": "tunnel",
    FIREWALL: "simple-firewall",
    "katran": "katran",
}
"""The dumps of table 3, with the claim of each."""
PORTS = [{"key": 0, "value": 1}, {"key": 1, "value": 1}]
"""The entries of the firewall's map of ports."""
TRAFFIC = "udp src=10.0.0.0/8 flows=10"
"""Flows as in a trace of the artifact."""
_FRAME = 60
_MISSING = f"{UNMEASURED}: {DUMPS} is not set"
_NAMED = (
    f"{DUMPS} names the folder of the published bytecode, parallelizer/xdp_prog_dump of "
    "github.com/axbryd/hXDP-Artifacts"
)
_REDIRECT = "six rows, the exit after a call and the empty pipeline take 12 cycles; the paper's rate is 10.4"
_OWN = "our program has the same function; its instructions are not those of the paper's program"
_DUMPED = "the model runs the rows of its own compiler, one a cycle"
_ORDER = "a load waits for an earlier store that may have the same bytes, which the public compiler ignores"
_RULES = "a rule of the paper's compiler that the public one does not have"
_CYCLES = "a rate is one of a whole number of cycles"


@cache
def compiled(name: str) -> bytes:
    """Return a program of this study as an eBPF object."""
    with as_file(files("nicety.studies.xdp.hxdp") / f"{name}.c") as source, TemporaryDirectory() as folder:
        return compile_xdp(source, output=Path(folder) / f"{name}.o").read_bytes()


def rate(name: str, *, traffic: str = "", overrides: tuple[str, ...] = (), seed: int = 1) -> float:
    """Return the rate without loss of a program on the card, in Mpps, with frames of 64 B with their check sequence."""
    maps: dict[str, object] = {"ports": PORTS} if name == "firewall" else {}
    with TemporaryDirectory() as folder:
        target = Path(folder) / f"{name}.o"
        target.write_bytes(compiled(name))
        report = check_line_rate(
            XdpProgram(target, maps=maps),
            nics=[CARD],
            traffic=[f"{traffic or TRAFFIC} size={_FRAME} packets=10k"],
            overrides=list(overrides),
            seed=seed,
        )
    (row,) = report["ebpf_cores"]
    return round((row["lossless_pps"] or 0.0) / 1e6, 2)


def dumped() -> dict[str, Any]:
    """Return the rows of the published programs, by the names of their dumps; none without their folder.

    Raises:
        InputError: the folder lacks a dump, or has one that cannot be read.
    """
    folder = os.environ.get(DUMPS)
    if not folder:
        return {}
    found = {}
    for name in TABLE:
        path = Path(folder) / name
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{DUMPS}: {path}: cannot read it ({error}); name parallelizer/xdp_prog_dump of axbryd/hXDP-Artifacts"
            ) from error
        found[name] = json.loads(_native.xdp_dump_rows(name, text, CARD) or "{}")
    return found


def _order(name: str, found: dict[str, Any]) -> str:
    """Return the reason of a deviation of a program's rows."""
    return _ORDER if found[name]["rows_by_registers"] < found[name]["rows"] else _RULES


def small(options: Options) -> Measured:
    """Measure the rates of the programs that the card's constants are fitted to."""
    late = ("compiler.exit_values=false",)
    ours = {
        "drop": Ours(rate("drop", seed=options.seed), why=_CYCLES),
        "drop-late": Ours(rate("drop", overrides=late, seed=options.seed), why=_CYCLES),
        "tx": Ours(rate("tx", seed=options.seed), why=_CYCLES),
        "redirect": Ours(rate("redirect", seed=options.seed), why=_REDIRECT),
    }
    return Measured(ours)


def firewall(options: Options) -> Measured:
    """Measure the rate of the simple firewall: of our program, and of the published bytecode."""
    found = dumped()
    published = Ours(round(found[FIREWALL]["pps"] / 1e6, 2), why=_DUMPED) if found else Ours(None, _MISSING, _NAMED)
    return Measured({"firewall": Ours(rate("firewall", seed=options.seed), why=_OWN), "firewall-bytecode": published})


def instructions(_: Options) -> Measured:
    """Measure the instructions per row of the published programs."""
    found = dumped()
    if not found:
        # The first row has the reason of all.
        return Measured({claim: Ours(None, _MISSING, "" if at else _NAMED) for at, claim in enumerate(TABLE.values())})
    return Measured(
        {claim: Ours(round(found[name]["slots_per_row"], 2), why=_order(name, found)) for name, claim in TABLE.items()}
    )


def figures(_: Options) -> Measured:
    """Return the reasons why figures are not compared."""
    no_numbers = f"{UNMEASURED}: the rates are in a picture alone"
    return Measured({name: Ours(None, no_numbers) for name in ("examples", "keys", "checksum")})

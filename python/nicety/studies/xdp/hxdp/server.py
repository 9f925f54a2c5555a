"""Rates of XDP programs in the driver of the server that hXDP is compared with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory

from nicety.bench.xdp import bench_xdp
from nicety.studies.claims import UNMEASURED, Ours
from nicety.studies.study import Measured, Options
from nicety.studies.xdp.hxdp.card import PORTS, TRAFFIC, compiled

HOST = "ethernet-100g"
"""The card with the server's costs of XDP."""


_WHY = {
    "host-drop": "host.xdp.frame is fitted to mlx5, and a frame costs less in i40e",
    "host-tx": "host.xdp.transmit has two functions of mlx5; i40e also unmaps a sent frame and returns its page",
    "host-redirect": "host.xdp.redirect is fifteen assumed functions of another tree of Linux",
    "host-firewall": "our program is shorter than the paper's, and the costs of map and redirect are assumed",
}
"""The reasons of deviations."""


def server_rate(name: str, *, overrides: Sequence[str] = (), seed: int = 1) -> float:
    """Return the rate of a program on one core of the server, in Mpps. Frames arrive faster than it takes them."""
    maps = {"ports": json.dumps(PORTS)} if name == "firewall" else {}
    with ExitStack() as stack:
        server = stack.enter_context(as_file(files("nicety.studies.xdp.hxdp") / "server.toml"))
        target = Path(stack.enter_context(TemporaryDirectory())) / f"{name}.o"
        target.write_bytes(compiled(name))
        (row,) = bench_xdp(
            target,
            nics=[str(server)],
            cpus=[1],
            traffic=f"{TRAFFIC} size=60 packets=30k",
            lossy=True,
            maps=maps,
            overrides=list(overrides),
            seed=seed,
        )["rows"]
    return round(row["taken_pps"] / 1e6, 2)


def served(options: Options) -> Measured:
    """Measure the rates of one core."""
    slow = ("host.clock=2.1 GHz",)
    ours = {
        claim: Ours(server_rate(claim.removeprefix("host-"), seed=options.seed), why=why) for claim, why in _WHY.items()
    }
    found = server_rate("firewall", overrides=slow, seed=options.seed)
    return Measured({**ours, "host-firewall-slow": Ours(found, why=_WHY["host-firewall"])})


def katran(_: Options) -> Measured:
    """Return the reason why Katran is not measured."""
    return Measured({"katran-rate": Ours(None, f"{UNMEASURED}: no rate of card or server is in the text")})

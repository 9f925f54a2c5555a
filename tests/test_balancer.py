"""The load balancer as a handler in C and as an XDP program."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import nicety
from nicety.build.compiler import library_source
from nicety.build.xdp import compile_xdp

SERVICE = struct.unpack("<I", bytes([10, 0, 0, 2]))[0]
PORT = 53 << 8
UDP = 17
STATION = [2, 0, 0, 0, 0, 7]
MAPS = {
    "services": [{"key": {"address": SERVICE, "port": PORT, "protocol": UDP}, "value": 0}],
    "places": [{"key": at, "value": 0} for at in range(251)],
    "servers": [{"key": 0, "value": {"address": 5, "station": STATION}}],
}


def state() -> bytes:
    """The tables of the handler in C: its address, services, places and servers."""
    services = [(0, 0, 0, 0)] * 16
    services[((SERVICE ^ PORT) * 0x9E3779B1 & 0xFFFFFFFF) >> 28] = (SERVICE, PORT, UDP, 0)
    tables = bytes(8) + b"".join(struct.pack("<4I", *service) for service in services)
    return tables + bytes(4 * 16 * 251) + struct.pack("<I8B", 5, *STATION, 0, 0) + bytes(12 * 63)


@pytest.mark.parametrize(("address", "sent"), [("10.0.0.2", True), ("10.0.0.3", False)])
def test_flows_to_the_service_leave_by_the_wire(tmp_path: Path, address: str, sent: bool) -> None:
    traffic = f"udp src=10.0.1.0/24 dst={address} sport=1000 dport=53 size=60 packets=500 rate=1Gbps"
    given = state()
    handler = library_source("frames/balancer.c")
    report = nicety.check_line_rate(
        handler, nics=["spin-100g"], traffic=traffic, state=given, state_bytes=len(given) + 24 * 1024
    )
    (row,) = report["rows"]
    (payload,) = [each for each in row["handlers"] if each["handler"] == "payload"]
    assert payload["returned"] == {"WIRE" if sent else "HOST": 500}
    built = compile_xdp(library_source("xdp/balancer.c"), output=tmp_path / "balancer.o")
    xdp = nicety.check_line_rate(nicety.XdpProgram(built, maps=MAPS), nics=["spin-100g"], traffic=traffic)
    assert xdp["rows"][0]["xdp"]["verdicts"] == {"XDP_TX" if sent else "XDP_PASS": 500}

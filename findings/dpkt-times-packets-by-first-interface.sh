#!/usr/bin/env bash
# Guess: a reader of pcapng gives each packet its time in the unit of its own interface.
# From:  the pcapng draft: a packet block names its interface, whose if_tsresol is the unit of the packet's time.
# True:  dpkt 1.9.8 takes the file's first interface for all packets. Behind a card with microseconds, times of a card with nanoseconds
#        are 1000 times as large, and later sections keep the first one's unit too. Issue 681 of dpkt describes it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check dpkt==1.9.8
cat >times.py <<'P'
import struct

import dpkt


def block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def interface(resolution: int) -> bytes:
    """An Ethernet interface whose unit is 10 to the power of -resolution seconds."""
    return block(1, struct.pack("<HHI HHB3x HH", 1, 0, 0, 9, 1, resolution, 0, 0))


def packet(interface: int, ticks: int) -> bytes:
    return block(6, struct.pack("<5I", interface, ticks >> 32, ticks & 0xFFFFFFFF, 60, 60) + bytes(60))


def times(capture: bytes) -> list[float]:
    open("capture.pcapng", "wb").write(capture)
    with open("capture.pcapng", "rb") as file:
        return [time for time, _ in dpkt.pcapng.Reader(file)]


section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
second = 1_700_000_000
two = section + interface(6) + interface(9) + packet(0, second * 10**6) + packet(1, second * 10**9)
joined = section + interface(6) + packet(0, second * 10**6) + section + interface(9) + packet(0, second * 10**9)
print(f"dpkt 1.9.8: two interfaces: {times(two)}; two sections: {times(joined)}")
raise SystemExit((times(two), times(joined)) != ([second, second * 1000], [second, second * 1000]))
P
env/bin/python times.py || { echo "changed: the times differ from those seen with dpkt 1.9.8" >&2; exit 1; }

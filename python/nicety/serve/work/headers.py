"""The headers of a frame: names, values and places of their fields, for Ethernet, ARP, IP, ICMP, UDP and TCP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TypedDict


class Field(TypedDict):
    """A field of a header: its name, its value as text, and its bytes in the packet."""

    name: str
    value: str
    offset_bytes: int
    length_bytes: int


class Layer(TypedDict):
    """A header or the payload of a packet, with its bytes in the packet."""

    name: str
    offset_bytes: int
    length_bytes: int
    fields: list[Field]


def _mac(data: bytes) -> str:
    return data.hex(":")


def _hexadecimal(data: bytes) -> str:
    return f"0x{data.hex()}"


def _whole(data: bytes) -> str:
    return str(int.from_bytes(data))


def _ip(data: bytes) -> str:
    return str(ip_address(data))


def _bits(shift: int, mask: int) -> Callable[[bytes], str]:
    return lambda data: str(int.from_bytes(data) >> shift & mask)


def _named(names: dict[int, str]) -> Callable[[bytes], str]:
    def text(data: bytes) -> str:
        number = int.from_bytes(data)
        shown = str(number) if len(data) == 1 else _hexadecimal(data)
        return f"{shown} ({names[number]})" if number in names else shown

    return text


def _flags(data: bytes) -> str:
    names = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR")
    found = [name for bit, name in enumerate(names) if data[0] >> bit & 1]
    return " ".join(found) or "none"


_TYPES = {0x0800: "IPv4", 0x0806: "ARP", 0x86DD: "IPv6", 0x8100: "VLAN", 0x88A8: "VLAN"}
_PROTOCOLS = {1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6"}

Row = tuple[str, int, int, Callable[[bytes], str]]
"""A field: name, offset in the header, length, and the function that makes its text."""


@dataclass(frozen=True)
class _Header:
    """A kind of header: its fixed length, its fields, and its successor and whole length by its bytes."""

    name: str
    length: int
    rows: Sequence[Row]
    next: Callable[[bytes], str | None] = lambda _: None
    whole: Callable[[bytes], int] | None = None


def _by_type(at: int) -> Callable[[bytes], str | None]:
    return lambda data: _TYPES.get(int.from_bytes(data[at : at + 2]))


def _of_ipv4(data: bytes) -> str | None:
    # Fragments behind the first one have no header of the next protocol.
    return None if int.from_bytes(data[6:8]) & 0x1FFF else _PROTOCOLS.get(data[9])


_HEADERS = {
    header.name: header
    for header in (
        _Header(
            "Ethernet",
            14,
            (("destination", 0, 6, _mac), ("source", 6, 6, _mac), ("type", 12, 2, _named(_TYPES))),
            _by_type(12),
        ),
        _Header(
            "VLAN",
            4,
            (
                ("priority", 0, 2, _bits(13, 7)),
                ("identifier", 0, 2, _bits(0, 0xFFF)),
                ("type", 2, 2, _named(_TYPES)),
            ),
            _by_type(2),
        ),
        _Header(
            "ARP",
            28,
            (
                ("operation", 6, 2, _named({1: "request", 2: "reply"})),
                ("sender station", 8, 6, _mac),
                ("sender address", 14, 4, _ip),
                ("target station", 18, 6, _mac),
                ("target address", 24, 4, _ip),
            ),
        ),
        _Header(
            "IPv4",
            20,
            (
                ("version", 0, 1, _bits(4, 15)),
                ("header words", 0, 1, _bits(0, 15)),
                ("type of service", 1, 1, _hexadecimal),
                ("total bytes", 2, 2, _whole),
                ("identification", 4, 2, _hexadecimal),
                ("flags", 6, 2, _bits(13, 7)),
                ("fragment offset", 6, 2, _bits(0, 0x1FFF)),
                ("time to live", 8, 1, _whole),
                ("protocol", 9, 1, _named(_PROTOCOLS)),
                ("checksum", 10, 2, _hexadecimal),
                ("source", 12, 4, _ip),
                ("destination", 16, 4, _ip),
            ),
            _of_ipv4,
            lambda data: 4 * (data[0] & 15),
        ),
        _Header(
            "IPv6",
            40,
            (
                ("version", 0, 1, _bits(4, 15)),
                ("traffic class", 0, 2, _bits(4, 0xFF)),
                ("flow label", 0, 4, _bits(0, 0xFFFFF)),
                ("payload bytes", 4, 2, _whole),
                ("next header", 6, 1, _named(_PROTOCOLS)),
                ("hop limit", 7, 1, _whole),
                ("source", 8, 16, _ip),
                ("destination", 24, 16, _ip),
            ),
            lambda data: _PROTOCOLS.get(data[6]),
        ),
        _Header(
            "UDP",
            8,
            (
                ("source port", 0, 2, _whole),
                ("destination port", 2, 2, _whole),
                ("bytes", 4, 2, _whole),
                ("checksum", 6, 2, _hexadecimal),
            ),
        ),
        _Header(
            "TCP",
            20,
            (
                ("source port", 0, 2, _whole),
                ("destination port", 2, 2, _whole),
                ("sequence", 4, 4, _whole),
                ("acknowledgement", 8, 4, _whole),
                ("header words", 12, 1, _bits(4, 15)),
                ("flags", 13, 1, _flags),
                ("window", 14, 2, _whole),
                ("checksum", 16, 2, _hexadecimal),
                ("urgent", 18, 2, _whole),
            ),
            whole=lambda data: 4 * (data[12] >> 4),
        ),
        _Header("ICMP", 4, (("type", 0, 1, _whole), ("code", 1, 1, _whole), ("checksum", 2, 2, _hexadecimal))),
        _Header("ICMPv6", 4, (("type", 0, 1, _whole), ("code", 1, 1, _whole), ("checksum", 2, 2, _hexadecimal))),
    )
}
_MOST = 16
"""Maximum number of headers that are read, so that nested tags end."""


def layers(frame: bytes, first: str | None = "Ethernet") -> list[Layer]:
    """Return the headers of a frame, and its payload. A header that is cut short, or unknown, is payload.

    Args:
        frame: the bytes.
        first: the name of the first header; None if the bytes have none.
    """
    found: list[Layer] = []
    at, name = 0, first
    while name is not None and len(found) < _MOST:
        header, data = _HEADERS[name], frame[at:]
        length = header.length if len(data) < header.length or header.whole is None else header.whole(data)
        if len(data) < max(length, header.length) or length < header.length:
            break
        fields: list[Field] = [
            {
                "name": field,
                "value": text(data[offset : offset + size]),
                "offset_bytes": at + offset,
                "length_bytes": size,
            }
            for field, offset, size, text in header.rows
        ]
        found.append({"name": header.name, "offset_bytes": at, "length_bytes": length, "fields": fields})
        at, name = at + length, header.next(data)
    if at < len(frame):
        found.append({"name": "payload", "offset_bytes": at, "length_bytes": len(frame) - at, "fields": []})
    return found


def summary(frame: bytes) -> str:
    """Return a frame in one line: its protocols, addresses and ports."""
    found = [layer for layer in layers(frame) if layer["name"] != "payload"]
    words = [" / ".join(layer["name"] for layer in found) or "no Ethernet header"]
    for layer in found:
        values = {field["name"]: field["value"] for field in layer["fields"]}
        if layer["name"] in ("IPv4", "IPv6"):
            words.append(f"{values['source']} to {values['destination']}")
        elif layer["name"] in ("UDP", "TCP"):
            words.append(f"port {values['source port']} to {values['destination port']}")
    return ", ".join(words)

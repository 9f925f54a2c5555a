"""Parts of the workbench without a server: headers, columns, values of cards, dispositions, and the wheel's files."""

from __future__ import annotations

import json
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nicety import _native
from nicety.bench.check.fuzz import usual_frames
from nicety.bench.line_rate import check_line_rate
from nicety.build.compiler import library_source
from nicety.errors import InputError
from nicety.serve.cards import bounds, value_of
from nicety.serve.work.columns import packed
from nicety.serve.work.headers import layers, summary
from nicety.serve.work.recorded import disposition, latency_histogram, packets_message
from nicety.serve.work.said import Names
from nicety.shared.cards import card_names, show

ROOT = Path(__file__).parent.parent


def fields(frame: bytes, name: str) -> dict[str, str]:
    (layer,) = (layer for layer in layers(frame) if layer["name"] == name)
    return {field["name"]: field["value"] for field in layer["fields"]}


def test_headers_have_their_fields_and_places() -> None:
    udp, tcp, _, vlan, arp = usual_frames()
    assert fields(udp, "Ethernet") == {
        "destination": "02:00:00:00:00:02",
        "source": "02:00:00:00:00:01",
        "type": "0x0800 (IPv4)",
    }
    assert fields(udp, "IPv4")["protocol"] == "17 (UDP)"
    assert (fields(udp, "UDP")["destination port"], fields(udp, "UDP")["bytes"]) == ("53", "26")
    assert [layer["name"] for layer in layers(vlan)] == ["Ethernet", "VLAN", "IPv4", "UDP", "payload"]
    assert fields(vlan, "VLAN")["identifier"] == "5"
    assert [layer["name"] for layer in layers(arp)][:2] == ["Ethernet", "ARP"]
    # The header of TCP has no words here, so its bytes are payload.
    assert [layer["name"] for layer in layers(tcp)] == ["Ethernet", "IPv4", "payload"]
    whole = bytearray(tcp)
    whole[46], whole[47] = 0x60, 0x12
    assert fields(bytes(whole), "TCP")["flags"] == "SYN ACK"
    at = {layer["name"]: (layer["offset_bytes"], layer["length_bytes"]) for layer in layers(bytes(whole))}
    assert at == {"Ethernet": (0, 14), "IPv4": (14, 20), "TCP": (34, 24), "payload": (58, 42)}


def test_headers_of_ipv6_fragments_and_short_frames() -> None:
    address = bytes.fromhex("20010db8000000000000000000000001")
    six = bytes(12) + b"\x86\xdd" + b"\x60\0\0\0\0\x08\x11\x40" + address * 2 + b"\0\x35\0\x35\0\x08\0\0"
    assert fields(six, "IPv6")["source"] == "2001:db8::1"
    assert summary(six) == "Ethernet / IPv6 / UDP, 2001:db8::1 to 2001:db8::1, port 53 to 53"
    fragment = bytearray(usual_frames()[0])
    fragment[21] = 1
    assert [layer["name"] for layer in layers(bytes(fragment))] == ["Ethernet", "IPv4", "payload"]
    for length in range(len(six)):
        found = layers(six[:length])
        assert sum(layer["length_bytes"] for layer in found) == length
    assert layers(bytes(8), None) == [{"name": "payload", "offset_bytes": 0, "length_bytes": 8, "fields": []}]
    tags = bytes(12) + b"\x81\0\0\1" * 100
    assert len(layers(tags)) <= 17


def test_columns_are_aligned() -> None:
    for name in ("a", "ab", "abc", "abcdefgh"):
        message = packed({"id": name}, {"n": np.arange(3, dtype=np.uint32), "x": np.array([0.5, np.nan])})
        length = int.from_bytes(message[:4], "little")
        header = json.loads(message[4 : 4 + length])
        begin = -(-(4 + length) // 8) * 8
        assert len(message) % 8 == 0
        first, second = header["columns"]
        assert (first["offset"], second["offset"]) == (0, 16)
        assert list(np.frombuffer(message, "<u4", 3, begin)) == [0, 1, 2]
        assert np.frombuffer(message, "<f8", 2, begin + 16)[0] == 0.5


def test_all_limited_values_of_cards_have_bounds_or_choices() -> None:
    for name in card_names():
        for parameter in show(name)["parameters"]:
            value = value_of(parameter)
            limited = parameter["allowed"] is not None or parameter["quantity"] == "flag"
            assert limited == (value["choices"] is not None or value["least"] is not None), parameter["key"]
            if value["choices"] is not None:
                assert value["value"] in value["choices"]
    assert bounds("size", "from 64 B to 1 MiB") == {"least": "64 B", "most": "1 MiB", "choices": None}


@pytest.mark.parametrize(
    ("message", "run", "came", "name"),
    [
        ("in flight", None, False, "dropped: packet buffer full"),
        ("frame", "HOST", True, "to host"),
        ("ring full", "HOST", True, "dropped: no buffer at the host"),
        ("sent on", "WIRE", True, "forwarded"),
        ("dropped by handler", "DROP", True, "dropped by handler"),
        ("handler failed", "FAIL", True, "failed"),
        ("ok", "SUCCESS", True, "processed"),
        ("ok", "DROP_PENDING", True, "dropped by handler"),
        ("handler error", "SEGV", True, "failed: SEGV"),
        ("no match", None, True, "failed: no match"),
        ("ok", None, True, "to host"),
    ],
)
def test_dispositions_are_named(message: str, run: str | None, came: bool, name: str) -> None:
    assert disposition(message, run, came=came) == name


def test_a_histogram_has_every_packet() -> None:
    latencies = np.array([np.nan, 1.0, 1000.0, 2500.0, 1e9])
    found = latency_histogram("card", {"latency_ps": latencies})
    assert found is not None
    assert (found["packets"], sum(found["counts"])) == (4, 4)
    assert found["edges_ns"] == sorted(found["edges_ns"])
    assert len(found["edges_ns"]) == len(found["counts"]) + 1
    same = latency_histogram("card", {"latency_ps": np.array([5.0, 5.0])})
    assert same is not None
    assert sum(same["counts"]) == 2
    assert latency_histogram("card", {"latency_ps": np.array([np.nan])}) is None


def test_names_replace_paths_and_the_longest_first() -> None:
    names = Names([("/tmp/x/", ""), ("/tmp/x/count.c", "count.c")])
    given = {"a": ["at /tmp/x/count.c:3", 1, None], "b": "/tmp/x/table.h"}
    assert names.all(given) == {"a": ["at count.c:3", 1, None], "b": "table.h"}


def test_the_wheel_has_the_page() -> None:
    """The wheel has the files of the package that git has."""
    for name in ("index.html", "app.js", "app.css"):
        assert files("nicety.serve").joinpath("assets", name).is_file()
    command = ["git", "ls-files", "python/nicety/serve/assets"]
    kept = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert {Path(name).name for name in kept} >= {"index.html", "app.js", "app.css"}


@pytest.mark.parametrize(
    ("program", "traffic", "lossy", "names"),
    [
        ("frames/count.c", "udp size=imix packets=500 rate=1Gbps", False, {"to host"}),
        ("frames/count.c", "udp size=64 packets=4k rate=5Gbps", False, {"to host", "dropped: no buffer at the host"}),
        ("frames/echo.c", "udp size=imix packets=500", True, {"forwarded"}),
        ("frames/drop.c", "udp size=64 packets=500 rate=1Gbps", False, {"dropped by handler"}),
    ],
)
def test_recorded_packets_have_the_latencies_of_the_report(
    program: str, traffic: str, lossy: bool, names: set[str]
) -> None:
    found: list[tuple[Any, Any]] = []

    def recorded(recording: _native.Recording) -> None:
        message, columns = packets_message(recording, {})
        found.append((json.loads(message[4 : 4 + int.from_bytes(message[:4], "little")]), columns))

    source = library_source(program)
    report = check_line_rate(source, nics=["spin-100g"], traffic=[traffic], lossy=lossy, recorded=recorded)
    figures = report["rows"][0]["traffic"]
    ((header, columns),) = found
    assert {each["name"] for each in header["dispositions"]} == names
    assert sum(each["packets"] for each in header["dispositions"]) == figures["offered"]
    latencies = columns["latency_ps"] / 1000
    assert latencies.max() == pytest.approx(figures["latency_ns_max"])
    assert latencies.mean() == pytest.approx(figures["latency_ns_mean"])
    losses = sum(each["packets"] for each in header["dispositions"] if each["is_loss"])
    assert losses == figures["dropped_at_host"] + figures["dropped_by_overload"]


def test_a_recording_goes_to_one_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leave one of them out"):
        check_line_rate(
            library_source("frames/drop.c"), nics=["spin-100g"], trace=tmp_path / "a.pftrace", recorded=lambda _: None
        )

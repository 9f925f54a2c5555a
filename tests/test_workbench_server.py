"""The server of the workbench: routes, its guard, works over the WebSocket, uploads, and its end."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from nicety.bench.check.fuzz import capture_of, usual_frames
from nicety.serve.app import is_static
from nicety.serve.uploads import MOST_UPLOADS
from sizes import examples

PROGRAM = """\
#include <frame.h>

__handler int frame_handler(const frame_t *frame, void *state) {
    __atomic_fetch_add((uint32_t *)state, frame->length, __ATOMIC_RELAXED);
    return FRAME_DROP;
}
"""
TRAP = PROGRAM.replace("(uint32_t *)state", "(uint32_t *)64")
RACE = PROGRAM.replace("__atomic_fetch_add((uint32_t *)state, frame->length, __ATOMIC_RELAXED)", "++*(uint32_t *)state")
LONG = PROGRAM.replace("    __atomic", "    for (volatile uint32_t i = 0; i < 20000; i++) {}\n    __atomic")
WAIT_S = 120


@dataclass
class Server:
    """A running server, and its page's address."""

    process: subprocess.Popen[str]
    port: int
    token: str
    folder: Path

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = "", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request. Return status, headers and body of the answer."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            given = {} if token is None else {"X-Nicety-Token": token or self.token}
            content = body if isinstance(body, bytes) or body is None else json.dumps(body)
            link.request(method, path, content, {**given, **(headers or {})})
            answer = link.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            link.close()

    def json(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request with the token. Return status and document of the answer."""
        status, _, content = self.ask(method, path, body)
        return status, json.loads(content)

    @contextlib.contextmanager
    def page(self) -> Iterator[Page]:
        """Connect as a page."""
        address = f"ws://127.0.0.1:{self.port}/ws?token={self.token}"
        with connect(address, max_size=None, open_timeout=WAIT_S, proxy=None) as link:
            yield Page(link)


@dataclass
class Page:
    """A page's WebSocket."""

    link: ClientConnection

    def send(self, **message: Any) -> None:
        self.link.send(json.dumps(message))

    def next(self) -> Any:
        """The next message: a document, or bytes."""
        message = self.link.recv(timeout=WAIT_S)
        return message if isinstance(message, bytes) else json.loads(message)

    def until(self, *types: str) -> tuple[Any, list[Any]]:
        """The next message of these types, and those before it."""
        before: list[Any] = []
        while True:
            message = self.next()
            if isinstance(message, dict) and message["type"] in types:
                return message, before
            before.append(message)

    def work(self, name: str, action: str, request: dict[str, Any], **more: Any) -> tuple[Any, list[Any]]:
        """Do a work to its end."""
        self.send(type="start", id=name, action=action, input=request, **more)
        return self.until("result", "failed", "cancelled")


@contextlib.contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Server]:
    """Run `nicety serve`."""
    command = [sys.executable, "-m", "nicety", "serve", "--no-open", *arguments]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"the workbench is at http://127\.0\.0\.1:(\d+)/\?token=(\S{43})\n", line)
            assert found is not None, line
            assert process.stdout.readline() == "Ctrl-C ends it\n"
            yield Server(process, int(found[1]), found[2], folder)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("workbench")
    (folder / "count.c").write_text(PROGRAM)
    (folder / "table.h").write_text("enum { WIDTH = 4 };\n")
    (folder.parent / "outside.h").write_text("enum { OUTSIDE = 1 };\n")
    with serving(folder, "count.c", "--nic", "spin-100g") as running:
        yield running


def asked(text: str = PROGRAM, *, traffic: Any = "udp size=64 packets=2k rate=1Gbps", **more: Any) -> dict[str, Any]:
    """The input of a work."""
    sent = {"kind": "expression", "expressions": [traffic]} if isinstance(traffic, str) else traffic
    program = {"origin": "file", "name": "count.c", "text": text}
    return {"program": program, "nics": ["spin-100g"], "traffic": sent, **more}


def columns(message: bytes) -> tuple[Any, dict[str, Any]]:
    """The header and the columns of a message of bytes."""
    (length,) = struct.unpack_from("<I", message)
    header = json.loads(message[4 : 4 + length])
    begin = -(-(4 + length) // 8) * 8
    kinds = {"u32": "<u4", "f64": "<f8"}
    found = {
        column["name"]: np.frombuffer(message, kinds[column["type"]], column["length"], begin + column["offset"])
        for column in header["columns"]
    }
    return header, found


def test_the_state_has_the_file_the_library_and_all_cards(server: Server) -> None:
    status, state = server.json("GET", "/api/state")
    assert status == 200
    assert state["file"] == {"origin": "file", "name": "count.c", "text": PROGRAM}
    assert {"name": "frames/echo.c", "cards": ["ethernet"]} in state["library"]
    takes = {card["name"]: card["takes_handlers"] for card in state["cards"]}
    assert (takes["spin-100g"], takes["pspin"], takes["qnix"], takes["ethernet-100g"]) == (True, True, False, False)
    assert state["nics"] == ["spin-100g"]
    status, program = server.json("POST", "/api/program", {"name": "frames/echo.c"})
    assert (status, program["origin"]) == (200, "library")
    assert "frame_handler" in program["text"]
    status, answer = server.json("POST", "/api/program", {"name": "../kv.c"})
    assert (status, answer["error"]["key"]) == (400, "name")


def test_a_card_has_all_values_with_bounds_and_changes(server: Server) -> None:
    _, card = server.json("POST", "/api/card", {"nic": "spin-100g", "set": ["hpu.cores=8"]})
    values = {value["key"]: value for value in card["values"]}
    cores = values["hpu.cores"]
    assert (cores["value"], cores["kind"], cores["unit"]) == ("8", "override", None)
    assert int(cores["least"]) == 1 < int(cores["most"])
    assert cores["replaces"] == "16 (spin-100g)"
    assert values["hpu.clock"]["unit"] == "GHz"
    assert "cost" in values["hpu.misaligned"]["choices"]
    assert card["command"]["text"] == "nicety specs show spin-100g --set hpu.cores=8"
    status, answer = server.json("POST", "/api/card", {"nic": "spin-100g", "set": ["hpu.cores=none"]})
    assert (status, answer["error"]["kind"]) == (400, "input")
    assert "hpu.cores" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("path", "headers", "token", "status"),
    [
        ("/api/state", {}, "", 200),
        ("/api/state", {}, None, 403),
        ("/api/state", {}, "wrong", 403),
        ("/api/state", {"Host": "attacker.example"}, "", 403),
        ("/", {"Host": "attacker.example"}, None, 403),
        ("/api/state", {"Origin": "http://attacker.example"}, "", 403),
        ("/api/state", {"Origin": "null"}, "", 403),
        ("/api/state", {"Host": "localhost:PORT", "Origin": "http://localhost:PORT"}, "", 200),
        ("/app.js", {}, None, 200),
        ("/../fields.py", {}, "", 404),
        ("/fields.py", {}, "", 404),
        ("/none.js", {}, None, 404),
    ],
)
def test_foreign_requests_are_refused(
    server: Server, path: str, headers: dict[str, str], token: str | None, status: int
) -> None:
    own = {name: value.replace("PORT", str(server.port)) for name, value in headers.items()}
    found, answer, _ = server.ask("GET", path, token=token, headers=own)
    assert found == status
    assert answer["cache-control"] == "no-store"
    assert "default-src 'self'" in answer["content-security-policy"]
    assert "script-src" not in answer["content-security-policy"]


@pytest.mark.parametrize(
    ("token", "headers"),
    [
        ("wrong", {}),
        ("", {"Origin": "http://attacker.example"}),
        ("", {"Host": "attacker.example"}),
    ],
)
def test_a_foreign_websocket_is_refused(server: Server, token: str, headers: dict[str, str]) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as link:
        own = {"Host": f"127.0.0.1:{server.port}", **headers}
        lines = [f"GET /ws?token={token or server.token} HTTP/1.1", *(f"{name}: {text}" for name, text in own.items())]
        lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
        lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]
        link.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        assert link.recv(64).startswith(b"HTTP/1.1 403")


def test_only_the_loopback_interface_is_bound(server: Server) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        with contextlib.suppress(OSError):
            # No packet is sent: the address of the interface with the default route.
            other.connect(("192.0.2.1", 9))
        address = other.getsockname()[0]
    if address.startswith(("127.", "0.")):
        pytest.skip("the machine has only the loopback interface")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address, server.port), timeout=WAIT_S)


def test_static_paths_are_only_those_of_the_page() -> None:
    def static(path: str, method: str = "GET") -> bool:
        return is_static({"type": "http", "method": method, "path": path})

    assert [static(path) for path in ("/", "/app.js", "/open/x")] == [True, True, True]
    assert [static(path) for path in ("/api/state", "/ws", "/a/b.js", "/app.py")] == [False] * 4
    assert not static("/", "POST")


def test_a_run_answers_first_and_has_timeline_packets_and_command(server: Server) -> None:
    with server.page() as page:
        end, before = page.work("one", "run", asked())
        assert end["type"] == "result", end
        result = end["result"]
        told = [message for message in before if isinstance(message, dict)]
        assert told[0]["type"] == "accepted"
        command = "nicety bench handlers count.c --nic spin-100g --traffic 'udp size=64 packets=2k rate=1Gbps'"
        assert told[0]["command"] == {"text": command, "note": None}
        news = [message for message in told if message["type"] == "news"]
        assert (news[0]["verdict"], news[0]["place"]) == ("yes", "spin-100g, traffic")
        assert result["ok"]
        assert result["error"] is None
        (row,) = result["report"]["rows"]
        assert row["traffic"]["offered"] == 2000
        assert any("sustainable rate" in line for line in result["sentences"][0]["lines"])
        assert str(server.folder) not in json.dumps(result)

        (timeline, uses), (packets, rows) = (columns(message) for message in before if isinstance(message, bytes))
        assert (timeline["part"], timeline["id"], packets["part"]) == ("timeline", "one", "packets")
        assert packets["dispositions"] == [
            {"name": "dropped by handler", "is_failure": False, "is_loss": False, "packets": 2000}
        ]
        assert list(rows["packet"]) == list(range(2000))
        assert rows["latency_ps"].max() / 1000 == pytest.approx(row["traffic"]["latency_ns_max"])
        assert (rows["size_bytes"] == 64).all()
        assert (rows["cycles"] > 0).all()
        groups = {lane["group"] for lane in timeline["lanes"]}
        assert {"HPU", "link", "matching"} <= groups
        assert (np.diff(uses["start_ps"]) >= 0).all()
        cores = [at for at, lane in enumerate(timeline["lanes"]) if lane["group"] == "HPU"]
        assert sorted(uses["packet"][np.isin(uses["lane"], cores)]) == list(range(2000))
        assert sum(result["latency"]["counts"]) == 2000

        page.send(type="packet", id="p", work="one", number=7)
        packet, _ = page.until("packet", "failed")
        assert [layer["name"] for layer in packet["layers"]] == ["Ethernet", "IPv4", "UDP", "payload"]
        assert (packet["size_bytes"], len(packet["bytes_hex"])) == (64, 128)
        page.send(type="packet", id="q", work="one", number=2000)
        assert "the traffic ends before it" in page.until("packet", "failed")[0]["error"]["message"]


def test_equal_packets_of_messages_are_numbered(server: Server) -> None:
    traffic = {"kind": "equal", "packet_sizes_bytes": [64], "messages": 4}
    program = {"origin": "library", "name": "sink_stream.c", "text": ""}
    program["text"] = server.json("POST", "/api/program", {"name": "sink_stream.c"})[1]["text"]
    request = asked(traffic=traffic) | {"program": program, "nics": ["spin-discrete", "spin-integrated"]}
    with server.page() as page:
        end, before = page.work("one", "run", request)
        assert end["type"] == "result", end
        assert [row["nic"] for row in end["result"]["report"]["rows"]] == ["spin-discrete", "spin-integrated"]
        (_, uses), (packets, rows) = (columns(message) for message in before if isinstance(message, bytes))
        assert sorted(rows["packet"]) == list(range(packets["rows"]))
        assert [each["name"] for each in packets["dispositions"]] == ["processed"]
        assert set(uses["packet"]) >= set(rows["packet"])
        page.send(type="packet", id="p", work="one", number=0)
        assert "Equal packets" in page.until("packet")[0]["note"]


def test_a_full_buffer_shows_lost_packets(server: Server) -> None:
    with server.page() as page:
        end, before = page.work("one", "run", asked(LONG, traffic="udp size=64 packets=600", overload="lossy"))
        assert end["type"] == "result", end
        figures = end["result"]["report"]["rows"][0]["traffic"]
        _, (packets, _) = (columns(message) for message in before if isinstance(message, bytes))
        lost = {each["name"]: each["packets"] for each in packets["dispositions"] if each["is_loss"]}
        assert lost == {"dropped: packet buffer full": figures["dropped_by_overload"]}
        assert figures["dropped_by_overload"] > 0


def test_a_failed_handler_is_shown_as_failed(server: Server) -> None:
    with server.page() as page:
        end, _ = page.work("one", "run", asked(TRAP))
        assert (end["type"], end["error"]["kind"]) == ("failed", "run")
        assert "count.c:4" in end["error"]["message"]
        assert end["error"]["line"] == 4
        end, before = page.work("two", "run", asked(PROGRAM.replace("FRAME_DROP", "FAIL")))
        assert end["type"] == "result"
        assert not end["result"]["ok"]
        assert end["result"]["error"]["kind"] == "run"
        _, (packets, _) = (columns(message) for message in before if isinstance(message, bytes))
        assert [each["is_failure"] for each in packets["dispositions"]] == [True]


def test_a_compile_error_has_its_place(server: Server) -> None:
    with server.page() as page:
        end, before = page.work("one", "profile", asked(PROGRAM.replace("FRAME_DROP", "FRAME_DRIP")))
        assert end["type"] == "failed"
        assert (end["error"]["kind"], end["error"]["line"], end["error"]["column"]) == ("input", 5, 12)
        assert end["error"]["diagnostics"][0]["severity"] == "error"
        assert "FRAME_DRIP" in end["error"]["diagnostics"][0]["message"]
        assert any(message["type"] == "output" for message in before)
        assert "Traceback" not in json.dumps([end, *before])


def test_a_profile_has_sources_lines_and_instructions(server: Server) -> None:
    edited = f"{PROGRAM}\n/* edited */\n"
    with server.page() as page:
        end, before = page.work("one", "profile", asked(edited))
        assert end["type"] == "result", end
        assert before[0]["command"]["note"] == "save the program as count.c"
        (row,) = end["result"]["rows"]
        program = next(source for source in end["result"]["sources"] if source["is_program"])
        assert (program["file"], program["text"]) == ("count.c", edited)
        lines = {line["line"]: line for line in row["lines"] if line["file"] == "count.c"}
        assert lines[4]["cycles"] > 0
        assert sum(lines[4]["causes"].values()) == lines[4]["cycles"]
        assert any(instruction["text"].startswith("amoadd.w") for instruction in row["instructions"])


def test_a_check_reports_findings(server: Server) -> None:
    with server.page() as page:
        end, before = page.work("one", "check", asked(RACE), schedules=2)
        assert end["type"] == "result", end
        assert not end["result"]["ok"]
        assert {finding["kind"] for finding in end["result"]["report"]["findings"]} == {"race"}
        assert before[0]["command"]["text"].startswith("nicety check count.c --nic spin-100g")


def test_cancel_kills_the_process(server: Server) -> None:
    with server.page() as page:
        page.send(type="start", id="long", action="run", input=asked(LONG, traffic="udp size=64 packets=1M"))
        page.until("accepted")
        children = processes(server.process.pid)
        page.send(type="cancel", id="long")
        end, _ = page.until("cancelled", "result", "failed")
        assert (end["type"], end["id"]) == ("cancelled", "long")
        assert not children or children - processes(server.process.pid)
        page.send(type="cancel", id="long")
        assert "no job of this name" in page.until("failed")[0]["error"]["message"]


def processes(parent: int) -> set[int]:
    """The children of a process, where the system lists them."""
    path = Path(f"/proc/{parent}/task/{parent}/children")
    return set(map(int, path.read_text().split())) if path.exists() else set()


def test_a_page_that_goes_away_cancels_its_work(server: Server) -> None:
    with server.page() as page:
        page.send(type="start", id="long", action="run", input=asked(LONG, traffic="udp size=64 packets=1M"))
        page.until("accepted")
        time.sleep(0.2)
        children = processes(server.process.pid)
    deadline = time.monotonic() + WAIT_S
    while children and children <= processes(server.process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_cancel_right_behind_a_start_ends_the_work(server: Server) -> None:
    with server.page() as page:
        for at in range(6):
            page.send(type="start", id=f"w{at}", action="run", input=asked(LONG, traffic="udp size=64 packets=1M"))
            page.send(type="cancel", id=f"w{at}")
            end, _ = page.until("cancelled", "failed")
            assert (end["type"], end["id"]) == ("cancelled", f"w{at}")
        assert page.work("last", "run", asked())[0]["type"] == "result"


def test_a_name_of_an_ended_work_is_used_again(server: Server) -> None:
    with server.page() as page:
        for _ in range(3):
            assert page.work("one", "run", asked())[0]["type"] == "result"
        page.send(type="start", id="one", action="run", input=asked(LONG, traffic="udp size=64 packets=1M"))
        page.until("accepted")
        time.sleep(0.3)
        page.send(type="cancel", id="one")
        assert page.until("cancelled")[0]["id"] == "one"


def test_a_packet_far_behind_is_refused(server: Server) -> None:
    with server.page() as page:
        assert page.work("one", "run", asked())[0]["type"] == "result"
        page.send(type="packet", id="p", work="one", number=4_000_000_000)
        assert page.until("failed")[0]["error"]["key"] == "number"


def test_an_upload_that_breaks_off_leaves_the_terminal_quiet(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        head = f"POST /api/uploads?name=a.pcap HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        head += f"X-Nicety-Token: {server.token}\r\nContent-Length: 1000000\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port)) as link:
            link.sendall(head.encode() + b"part")
            time.sleep(0.3)
        assert server.json("POST", "/api/card", {"nic": "spin-100g"})[0] == 200
        server.process.send_signal(signal.SIGINT)
        assert server.process.communicate(timeout=WAIT_S)[1] == ""


def test_pages_work_independently_and_within_limits(server: Server) -> None:
    long = asked(LONG, traffic="udp size=64 packets=1M")
    with server.page() as one, server.page() as two:
        for at in range(4):
            one.send(type="start", id=f"w{at}", action="run", input=long)
        one.send(type="start", id="w4", action="run", input=long)
        assert "4 jobs are running" in one.until("failed")[0]["error"]["message"]
        one.send(type="start", id="w1", action="run", input=long)
        assert one.until("failed")[0]["error"]["key"] == "id"
        assert two.work("w1", "run", asked())[0]["type"] == "result"
        one.send(type="cancel", id="w2")
        assert one.until("cancelled")[0]["id"] == "w2"


@pytest.mark.parametrize(
    ("message", "key", "words"),
    [
        ({"type": "stop"}, "type", "start"),
        ({"type": "start", "id": "a b", "action": "run", "input": {}}, "id", "letters"),
        ({"type": "start", "id": "a", "action": "walk", "input": {}}, "action", "run"),
        ({"type": "start", "id": "a", "action": "run", "input": {}}, "input.program", "missing"),
        ({"type": "start", "id": "a", "action": "run", "input": asked(), "schedules": 3}, "schedules", "check"),
        ({"type": "start", "id": "a", "action": "run", "input": asked() | {"cpus": 4}}, "input.cpus", "no such key"),
        ({"type": "start", "id": "a", "action": "run", "input": asked() | {"nics": ["x"]}}, "input.nics[0]", "qnix"),
        ({"type": "start", "id": "a", "action": "run", "input": asked() | {"seed": 1.5}}, "input.seed", "whole"),
        ({"type": "start", "id": "a", "action": "run", "input": asked() | {"seed": True}}, "input.seed", "whole"),
        (
            {"type": "start", "id": "a", "action": "run", "input": asked() | {"defines": ["A=1", "A=x.h"]}},
            "input.defines[1]",
            "NAME=VALUE",
        ),
        (
            {"type": "start", "id": "a", "action": "run", "input": asked(traffic="capture=/etc/hosts")},
            "input.traffic.expressions[0]",
            "upload the capture",
        ),
        ({"type": "packet", "id": "a", "work": "none", "number": 0}, "work", "no longer has"),
        ({"type": "cancel", "id": "a", "now": 1}, "now", "no such key"),
        ([1], None, "object"),
        ("text", None, "object"),
    ],
)
def test_an_invalid_message_is_answered_with_its_key(server: Server, message: Any, key: str, words: str) -> None:
    with server.page() as page:
        page.link.send(json.dumps(message))
        answer = page.next()
        assert (answer["type"], answer["error"]["kind"]) == ("failed", "input")
        assert answer["error"].get("key") == key
        assert words in answer["error"]["message"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
KEYS = ("type", "id", "action", "input", "work", "number", "schedules", "program", "nics", "traffic", "set", "rules")


@given(
    st.dictionaries(st.sampled_from(KEYS), JSON).map(json.dumps)
    | JSON.map(json.dumps)
    | st.text(max_size=50)
    | st.just("[" * 100_000)
    | st.just('{"type": 1e999}')
)
@examples(60, deadline=None)
def test_random_messages_are_answered_with_errors(server: Server, text: str) -> None:
    with server.page() as page:
        page.link.send(text)
        answer = page.next()
        assert (answer["type"], answer["error"]["kind"]) == ("failed", "input")


@given(st.sampled_from(["program", "nics", "traffic", "set", "rules", "names", "defines", "seed", "overload"]), JSON)
@examples(20, deadline=None)
def test_a_request_with_a_random_value_is_refused_or_runs(server: Server, key: str, value: Any) -> None:
    with server.page() as page:
        page.send(type="start", id="a", action="run", input=asked() | {key: value})
        answer = page.next()
        assert answer["type"] in ("failed", "accepted")
        assert answer["type"] == "accepted" or answer["error"]["kind"] == "input"


def test_a_message_of_bytes_and_a_large_one_close_the_connection(server: Server) -> None:
    with server.page() as page:
        page.link.send(b"bytes")
        with pytest.raises(ConnectionClosed) as closed:
            page.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
    with server.page() as page:
        page.link.send("x" * (1 << 20) + "x")
        with pytest.raises(ConnectionClosed) as closed:
            page.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


def test_a_large_request_is_refused(server: Server) -> None:
    status, answer = server.json("POST", "/api/card", {"nic": "x" * (1 << 20)})
    assert (status, answer["error"]["kind"]) == (413, "input")


@pytest.mark.parametrize(
    ("include", "words"),
    [
        ('#include "../outside.h"', "outside"),
        ('#include "/outside.h"', "relative path"),
        ('%:include "../outside.h"', "outside"),
        ("# /* */ include <../outside.h>", "outside"),
        ('#inc\\\nlude "../outside.h"', "outside"),
        ('#if __has_include("../outside.h")\n#endif', "outside"),
        ('#define FILE "../outside.h"\n#include FILE', "name the file"),
        ('#include "inside.h"', "outside"),
        ('asm(".macro none\\n.endm");', "assembly"),
        ('asm(".inc" "bin \\"../outside.h\\"");', "assembly"),
        ('asm(".\\151ncbin \\"../outside.h\\"");', "assembly"),
        ('\ufeff#include "../outside.h"', "outside"),
        ('#define S(x) #x\nasm("." S(macro) " none\\n.endm");', "assembly"),
        ('#define A asm\n#define B ".mac"\nA(B "ro none\\n.endm");', "assembly"),
        ('#define P(x, y) x##y\n#define B ".mac"\nP(as, m)(B "ro none\\n.endm");', "assembly"),
    ],
)
def test_includes_stay_in_the_folder(server: Server, include: str, words: str) -> None:
    (server.folder / "inside.h").write_text('#include "../outside.h"\n')
    with server.page() as page:
        end, _ = page.work("one", "check", asked(f"{include}\n{PROGRAM}"))
        assert end["type"] == "failed"
        assert words in end["error"]["message"]
        assert end["error"]["kind"] == "input"


def test_headers_of_the_folder_and_the_library_are_included(server: Server) -> None:
    text = f'#include "table.h"\n#include "nothing.h"\n{PROGRAM}'
    with server.page() as page:
        end, _ = page.work("one", "check", asked(text))
        assert "'nothing.h' file not found" in json.dumps(end)
        end, _ = page.work("two", "check", asked(text.replace('#include "nothing.h"', "#include <stdint.h>")))
        assert end["type"] == "result", end


def test_an_upload_is_sent_as_traffic(server: Server) -> None:
    capture = capture_of(usual_frames() * 20)
    status, upload = server.json("POST", "/api/uploads?name=..%2Fmy%20capture.pcap", capture)
    assert (status, upload["packets"], upload["truncated"], upload["note"]) == (200, 100, False, None)
    assert upload["name"] == "my_capture.pcap"
    assert upload["first_packets"][0]["summary"] == "Ethernet / IPv4 / UDP, 10.0.0.1 to 10.0.0.2, port 53 to 53"
    with server.page() as page:
        traffic = {"kind": "capture", "upload": upload["upload"], "rate": "1Gbps"}
        end, before = page.work("one", "run", asked(traffic=traffic))
        assert end["type"] == "result", end
        assert end["result"]["report"]["rows"][0]["traffic"]["offered"] == 100
        assert before[0]["command"]["text"].endswith("--traffic 'capture=my_capture.pcap rate=1Gbps'")
        assert before[0]["command"]["note"] == "my_capture.pcap is your capture"
        assert ".capture" not in json.dumps(end)
        page.send(type="packet", id="p", work="one", number=3)
        assert [layer["name"] for layer in page.until("packet")[0]["layers"]][:2] == ["Ethernet", "VLAN"]


def test_uploads_without_packets_are_refused_and_old_ones_are_forgotten(server: Server) -> None:
    status, answer = server.json("POST", "/api/uploads?name=a.txt", b"no capture at all")
    assert (status, answer["error"]["kind"]) == (400, "input")
    assert answer["error"]["message"].startswith("a.txt: this is no capture; pcap and pcapng can be read")
    assert "no packets" in server.json("POST", "/api/uploads", capture_of([]))[1]["error"]["message"]
    cut = capture_of(usual_frames())[:-3]
    assert "packet 5" in server.json("POST", "/api/uploads", cut)[1]["error"]["message"]
    keys = [
        server.json("POST", "/api/uploads", capture_of(usual_frames()))[1]["upload"] for _ in range(MOST_UPLOADS + 1)
    ]
    with server.page() as page:
        end, _ = page.work("one", "run", asked(traffic={"kind": "capture", "upload": keys[0]}))
        assert "upload it again" in end["error"]["message"]
        assert page.work("two", "run", asked(traffic={"kind": "capture", "upload": keys[-1]}))[0]["type"] == "result"


def test_a_large_upload_is_taken_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a capture ends within a packet, and is used up to the packet before."""
    import asyncio

    from nicety.errors import InputError
    from nicety.serve import uploads

    capture = capture_of(usual_frames() * 20)
    monkeypatch.setattr(uploads, "MOST_KEPT_BYTES", len(capture) // 2)

    async def chunks(content: bytes) -> Any:
        for at in range(0, len(content), 100):
            yield content[at : at + 100]

    kept = uploads.Uploads(tmp_path)
    upload = asyncio.run(kept.receive("big.pcap", chunks(capture)))
    described = kept.add(upload)
    assert (described["size_bytes"], described["kept_bytes"]) == (len(capture), len(capture) // 2)
    assert described["truncated"]
    assert 40 < described["packets"] < 60
    assert f"first {described['packets']} packets" in described["note"]
    monkeypatch.setattr(uploads, "MOST_PACKETS", 7)
    upload = asyncio.run(kept.receive("big.pcap", chunks(capture[: len(capture) // 2])))
    assert kept.add(upload)["packets"] == 7
    monkeypatch.setattr(uploads, "MOST_BYTES", 1000)
    with pytest.raises(InputError, match="upload a part"):
        asyncio.run(kept.receive("big.pcap", chunks(capture)))
    assert len(list(tmp_path.iterdir())) == 2


def test_the_end_of_the_server_is_told_and_clean(tmp_path: Path) -> None:
    (tmp_path / "count.c").write_text(PROGRAM)
    with serving(tmp_path, "count.c") as running:
        with running.page() as page:
            running.json("POST", "/api/uploads", capture_of(usual_frames()))
            page.send(type="start", id="long", action="run", input=asked(LONG, traffic="udp size=64 packets=1M"))
            page.until("accepted")
            time.sleep(0.2)
            children = processes(running.process.pid)
            running.process.send_signal(signal.SIGINT)
            closing, _ = page.until("closing")
            assert closing["reason"] == "nicety serve has ended"
            with pytest.raises(ConnectionClosed) as closed:
                page.until("none")
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001
        out, errors = running.process.communicate(timeout=WAIT_S)
        assert (running.process.returncode, out, errors) == (0, "", "")
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def test_the_browser_gets_a_code_that_is_valid_once(tmp_path: Path) -> None:
    browser = tmp_path / "browser.py"
    browser.write_text(f"import sys; open({str(tmp_path / 'opened')!r}, 'w').write(sys.argv[1])")
    environment = {**os.environ, "DISPLAY": ":9", "BROWSER": f"{sys.executable} {browser} %s"}
    command = [sys.executable, "-m", "nicety", "serve"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            port, token = re.findall(r":(\d+)/\?token=(.*)", address)[0]
            deadline = time.monotonic() + WAIT_S
            opened = tmp_path / "opened"
            while not (opened.exists() and opened.read_text()):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            code = opened.read_text().removeprefix(f"http://127.0.0.1:{port}")
            assert token not in code
            running = Server(process, int(port), token, tmp_path)
            status, headers, _ = running.ask("GET", code, token=None)
            assert (status, headers["location"]) == (303, f"/?token={token}")
            status, headers, _ = running.ask("GET", code, token=None)
            assert (status, headers["location"]) == (303, "/")
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.c"], "none.c: cannot read it (No such file or directory)"),
        (["program.o"], "program.o: no C file"),
        (["--nic", "spin-900g"], "spin-900g"),
        (
            ["--nic", "spin-100g,qnix"],
            "--nic qnix: no handlers run on packets there; name bluefield3-dpa, pspin, spin-100g, ",
        ),
        (["--nic", "hxdp-sume"], "--nic hxdp-sume: no handlers run on packets there; name "),
        (["--nic", "ethernet-100g"], "--nic ethernet-100g: no handlers run on packets there; name "),
        (["--port", "70000"], "a number from 0 to 65535"),
    ],
)
def test_wrong_arguments_are_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "program.o").write_bytes(b"\x7fELF")
    command = [sys.executable, "-m", "nicety", "serve", "--no-open", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "nicety", "serve", "--no-open", "--port", str(port)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S, check=False)
    expected = (
        f"nicety: --port {port}: another program listens at it; name another port, or write --port 0 for any free one"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{expected}\n")


def test_no_other_command_imports_the_server() -> None:
    code = """
import sys, nicety.cli.app
nicety.cli.app.everything()
import nicety.bench.line_rate
print([name for name in ("starlette", "uvicorn", "websockets", "anyio", "nicety.serve.app") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_refused_handshake_is_an_invalid_status(server: Server) -> None:
    with pytest.raises(InvalidStatus):
        connect(f"ws://127.0.0.1:{server.port}/ws", open_timeout=WAIT_S, proxy=None)

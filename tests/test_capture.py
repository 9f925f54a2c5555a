"""Captures from Python and the command line, read by tshark."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import nicety as package
from conftest import Result
from console import ROOT, blocks, steps
from nicety.show.traces import RecordingWarning

LUA = ROOT / "docs/assets/nicety.lua"
PAGE = ROOT / "docs/guide/capture.md"
# Wireshark's own message.
_ROOT = re.compile(r'Running as user "root" and group "root"\. This could be dangerous\.\n')


async def ping_pong(host: package.Host) -> None:
    """Rank 0 sends 8 bytes to rank 1, which answers."""
    buffer = host.alloc(8)
    for turn in range(2):
        if turn == host.rank:
            await host.send(buffer, to=1 - host.rank, tag=1)
        else:
            await host.recv(buffer, source=1 - host.rank, tag=1)


@pytest.fixture
def tshark(tool: Callable[[str], str]) -> Callable[..., str]:
    """Runs tshark, which must not complain."""
    path = tool("tshark")

    def run(*arguments: str | Path) -> str:
        done = subprocess.run([path, *arguments], check=False, capture_output=True, text=True, timeout=120)
        assert (done.returncode, _ROOT.sub("", done.stderr)) == (0, "")
        return done.stdout

    return run


def fields(tshark: Callable[..., str], file: Path, *names: str) -> list[list[str]]:
    """Fields of all packets."""
    wanted = [word for name in names for word in ("-e", name)]
    text = tshark("-X", f"lua_script:{LUA}", "-r", file, "-T", "fields", *wanted)
    return [line.split("\t") for line in text.splitlines()]


def test_a_program_is_captured_with_the_times_worked_by_hand(tshark: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "ping.pcapng"
    cluster = package.Cluster(2, "spin-discrete")
    with package.Capture(file) as capture:
        run = cluster.run(ping_pong)
    assert capture.left_out == 0
    assert tshark("-r", file, "-q") == ""
    found = fields(
        tshark,
        file,
        "frame.interface_name",
        "frame.time_epoch",
        "frame.comment",
        "nicety.source",
        "nicety.payload_length",
    )
    assert found == [
        ["hosts.0 -> hosts.1", "0.000000315", "315000 ps", "0", "8"],
        ["hosts.1 -> hosts.0", "0.000001008", "1008685 ps", "1", "8"],
    ]
    # Outside runs are not in it, and take the same time.
    before = file.read_bytes()
    assert cluster.run(ping_pong).time_ns == run.time_ns
    assert file.read_bytes() == before


def test_bytes_are_those_that_were_sent(tshark: Callable[..., str], tmp_path: Path) -> None:
    async def main(host: package.Host) -> None:
        buffer = host.alloc(10_000)
        if host.rank == 0:
            buffer.array[:] = [7 * i % 251 for i in range(10_000)]
            await host.send(buffer, to=1, tag=1)
        else:
            await host.recv(buffer, source=0, tag=1)

    file = tmp_path / "bytes.pcapng"
    with package.Capture(file):
        package.Cluster(2, "spin-discrete").run(main)
    rows = fields(tshark, file, "nicety.source", "nicety.offset", "nicety.payload")
    payload = b"".join(bytes.fromhex(row[2]) for row in rows if row[0] == "0" and len(row) > 2)
    assert payload == bytes(7 * i % 251 for i in range(10_000))


def test_frames_of_ethernet_are_decoded_as_such(tshark: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "frames.pcapng"
    with package.Capture(file):
        package.Cluster(2, "nfp-4000").run(ping_pong)
    found = fields(tshark, file, "frame.protocols", "eth.dst", "eth.src")
    assert {row[0].split(":")[0] for row in found} == {"eth"}
    assert found[0][1:] == ["02:ff:00:00:00:01", "02:00:00:00:00:00"]


@pytest.mark.parametrize("nic", ["niagara2-niu", "niagara2-neptune"])
def test_streams_of_tcp_are_followed(tshark: Callable[..., str], tmp_path: Path, nic: str) -> None:
    sent = bytes(11 * i % 256 for i in range(9000))

    async def main(host: package.Host) -> None:
        buffer = host.alloc(len(sent))
        if host.rank == 0:
            buffer.array[:] = list(sent)
            await host.send(buffer, to=1, tag=7)
        else:
            await host.recv(buffer, source=0, tag=7)

    file = tmp_path / "stream.pcapng"
    with package.Capture(file):
        run = package.Cluster(2, nic).run(main)
    names = [
        "frame.protocols",
        "ip.checksum.status",
        "tcp.checksum.status",
        "tcp.stream",
        "ip.src",
        "tcp.seq",
        "tcp.payload",
    ]
    wanted = [word for name in names for word in ("-e", name)]
    sums = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"]
    rows = [row.split("\t") for row in tshark(*sums, "-r", file, "-T", "fields", *wanted).splitlines()]
    assert {tuple(row[:4]) for row in rows} == {
        ("eth:ethertype:ip:tcp", "1", "1", "0"),
        ("eth:ethertype:ip:tcp:data", "1", "1", "0"),
    }
    stream: dict[int, bytes] = {int(row[5]): bytes.fromhex(row[6]) for row in rows if row[4] == "10.0.0.1" and row[6]}
    bytes_ = b"".join(stream[at] for at in sorted(stream))
    # The message's header, and the message.
    assert (bytes_[:4], bytes_[28:]) == (b"nice", sent)
    assert len(rows) == sum(node.socket.frames_sent for node in run.nodes)
    # No packet that Wireshark marks as odd.
    assert tshark("-r", file, "-Y", "tcp.analysis.flags || _ws.malformed") == ""


@pytest.mark.parametrize("nic", ["ethernet-100g", "spin-discrete"])
def test_pause_frames_are_decoded_as_such(
    nicety: Callable[..., Result], tshark: Callable[..., str], tmp_path: Path, nic: str
) -> None:
    flow = (
        "--pattern",
        "incast:4",
        "--flow-control",
        "pfc,buffer=100Ki" if nic.startswith("eth") else "pfc,buffer=40Ki",
    )
    run = nicety(
        *("bench", "bandwidth", "--nic", nic, "--sizes", "64Ki", "--iterations", "1", "--warmup", "0", "--window", "4"),
        *(*flow, "--capture", "pfc.pcapng", "--json"),
    )
    assert run.status == 0, run.stderr
    file = tmp_path / "pfc.pcapng"
    names = ("eth.dst", "eth.src", "macc.opcode", "macc.cbfc.pause_time.c0", "frame.comment", "frame.interface_name")
    rows = [row for row in fields(tshark, file, *names) if row[2]]
    assert rows
    for to, source, opcode, quanta, comment, interface in rows:
        assert (to, opcode) == ("01:80:c2:00:00:01", "0x0101")
        assert interface.startswith("switch.0 -> hosts.") == source.startswith("02:01")
        assert comment.endswith("end of the pause" if quanta == "0" else f"pause for {quanta} quanta")
    assert {"0", "65535"} == {row[3] for row in rows}


def test_faults_are_told_and_a_failed_run_is_there(tshark: Callable[..., str], tmp_path: Path) -> None:
    file = tmp_path / "lost.pcapng"
    cluster = package.Cluster(2, "spin-discrete", faults="loss=1")
    with pytest.raises(package.Error), package.Capture(file):
        cluster.run(ping_pong)
    assert fields(tshark, file, "frame.comment", "nicety.lost")[0] == ["315000 ps, lost", "1"]


def test_packets_that_do_not_fit_are_told(tmp_path: Path) -> None:
    capture = package.Capture(tmp_path / "few.pcapng", memory=1)
    with pytest.warns(RecordingWarning, match=r"few\.pcapng: 2 packets did not fit"), capture:
        package.Cluster(2, "spin-discrete").run(ping_pong)
    assert (capture.left_out, capture.packets) == (2, 2)


def test_a_capture_of_nothing_is_told(tmp_path: Path) -> None:
    capture = package.Capture(tmp_path / "nothing.pcapng")
    with pytest.warns(RecordingWarning, match="no packet was on a link"), capture:
        package.run_benchmark("latency", nics="apenet-v5", sizes=8, iterations=1, loopback=True)
    assert capture.packets == 0


def test_captures_nest(tmp_path: Path) -> None:
    one, two = tmp_path / "one.pcapng", tmp_path / "two.pcapng"
    with package.Capture(one):
        with package.Capture(two):
            package.Cluster(2, "spin-discrete").run(ping_pong)
        assert two.exists()
        assert not one.exists()
        package.Cluster(2, "spin-discrete").run(ping_pong)
    assert one.read_bytes() == two.read_bytes()


BENCHMARKS = {
    "latency": ["--nic", "spin-discrete,qnix", "--sizes", "8,64"],
    "bandwidth": ["--nic", "apenet-v5", "--sizes", "4096", "--window", "4"],
    "stream": ["--nic", "niagara2-niu", "--connections", "1", "--warmup", "0ns", "--duration", "2ms"],
    "request-response": ["--nic", "niagara2-niu", "--connections", "1", "--warmup", "1ms", "--duration", "1ms"],
    "halo": ["--nic", "apenet-v5", "--nodes", "8", "--sizes", "64"],
    "torus": [
        "--nic",
        "apenet-v5",
        "--topology",
        "torus:2x2x2",
        "--load",
        "0.1",
        "--duration",
        "2us",
        "--warmup",
        "1us",
    ],
    "accumulate": ["--nic", "spin-discrete", "--sizes", "4096"],
    "fairness": ["--nic", "qnix", "--processes", "2", "--messages", "2"],
    "channel-latency": ["--nic", "nfp-4000", "--sizes", "8"],
}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_can_be_captured(
    nicety: Callable[..., Result], tshark: Callable[..., str], tmp_path: Path, name: str
) -> None:
    arguments = ["bench", name, *BENCHMARKS[name], "--json"]
    plain = nicety(*arguments)
    found = nicety(*arguments, "--capture", tmp_path / "bench.pcapng")
    assert (found.status, json.loads(found.stdout)) == (0, json.loads(plain.stdout))
    assert tshark("-r", tmp_path / "bench.pcapng", "-q") == ""
    packets = fields(tshark, tmp_path / "bench.pcapng", "frame.time_epoch")
    # Channels are between a host and its own card.
    assert bool(packets) == (name != "channel-latency")


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("x.pcap", "a capture's name ends with .pcapng, as in x.pcapng"),
        ("no/x.pcapng", "there is no folder"),
        ("folder.pcapng", "this is a folder; name a file in it"),
    ],
)
def test_a_file_that_cannot_be_is_refused_before_the_run(
    nicety: Callable[..., Result], tmp_path: Path, file: str, told: str
) -> None:
    (tmp_path / "folder.pcapng").mkdir()
    path = tmp_path / file
    done = nicety("bench", "latency", "--nic", "spin-discrete", "--sizes", "8", "--capture", path)
    assert (done.status, done.stdout) == (2, "")
    assert f"--capture {path}: {told}" in done.stderr
    with pytest.raises(package.InputError, match=re.escape(f"{path}: {told}")):
        package.Capture(path)


def test_two_uses_of_one_file_are_refused(nicety: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"
    done = nicety("bench", "latency", "--nic", "spin-discrete", "--csv", path, "--capture", path)
    assert done.status == 2
    assert "the command uses this file for another purpose" in done.stderr
    assert not path.exists()


def test_a_program_that_deadlocks_leaves_its_capture(
    nicety: Callable[..., Result], tshark: Callable[..., str], tmp_path: Path
) -> None:
    program = tmp_path / "stuck.py"
    program.write_text(
        "async def main(host):\n"
        "    buffer = host.alloc(8)\n"
        "    if host.rank == 0:\n"
        "        await host.send(buffer, to=1, tag=1)\n"
        "    await host.recv(buffer, source=1 - host.rank, tag=1)\n"
    )
    done = nicety("run", program, "--nic", "spin-discrete", "--capture", tmp_path / "stuck.pcapng")
    assert done.status == 1
    assert "deadlock" in done.stderr
    assert len(fields(tshark, tmp_path / "stuck.pcapng", "frame.number")) >= 1


def test_the_page_shows_what_tshark_says(
    nicety: Callable[..., Result], tshark: Callable[..., str], tmp_path: Path
) -> None:
    shown = list(blocks(PAGE.read_text()))
    (capture,) = [step for block in shown if block.language == "console" for step in steps(block.text)]
    assert nicety(*capture.command.split()[1:]).status == 0
    (step,) = [step for block in shown if block.text.startswith("$ tshark") for step in steps(block.text)]
    words = [word.replace("nicety.lua", str(LUA)) for word in step.command.split()[1:]]
    words = [str(tmp_path / word) if word == "ping.pcapng" else word for word in words]
    assert tshark(*words).splitlines() == step.shown


def interfaces(tshark: Callable[..., str], file: Path) -> dict[str, list[float]]:
    """The begin of packets on each interface, in nanoseconds."""
    found: dict[str, list[float]] = {}
    for name, time in fields(tshark, file, "frame.interface_name", "frame.time_epoch"):
        found.setdefault(name, []).append(float(time) * 1e9)
    return found


DROPS = "#include <frame.h>\n__handler int frame_handler(const frame_t *f, void *s) { return FRAME_DROP; }\n"
SUMS = """
#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < frame->length; i++)
        sum += frame->data[i];
    *(volatile uint32_t *)state = sum;
    return FRAME_DROP;
}
"""


def two_ports(nicety: Callable[..., Result], folder: Path, handler: str, size: int, *options: str) -> Path:
    (folder / "mine.c").write_text(handler)
    traffic = [word for _ in range(2) for word in ("--traffic", f"udp size={size} packets=900")]
    done = nicety(
        *("bench", "handlers", "mine.c", "--nic", "spin-100g", "--set", "link.ports=2", *traffic, *options),
        *("--capture", "ports.pcapng", "--json"),
    )
    assert done.status in {0, 1}, done.stderr
    return folder / "ports.pcapng"


def test_each_port_of_a_card_is_a_wire_of_its_own(
    nicety: Callable[..., Result], tshark: Callable[..., str], tmp_path: Path
) -> None:
    file = two_ports(nicety, tmp_path, DROPS, 1500, "--lossy")
    found = interfaces(tshark, file)
    assert set(found) == {"hosts.0 -> hosts.1 port 0", "hosts.2 -> hosts.1 port 1"}
    for times in found.values():
        # IEEE 802.3 at 100 Gb/s: preamble, delimiter, 1500 bytes, check sequence and gap between frames, 121.92 ns.
        gaps = [after - before for before, after in itertools.pairwise(times)]
        assert len(times) == 900
        assert min(gaps) > 120.5
        assert sum(gaps) / len(gaps) == pytest.approx(8 * (7 + 1 + 1500 + 4 + 12) / 100, abs=0.01)


def test_each_port_of_a_card_has_its_pauses_and_drops(
    nicety: Callable[..., Result], tshark: Callable[..., str], tmp_path: Path
) -> None:
    file = two_ports(nicety, tmp_path, SUMS, 1500, "--pfc")
    rows = fields(tshark, file, "frame.interface_name", "frame.comment", "eth.type", "eth.src")
    pauses = [row for row in rows if row[2] == "0x8808"]
    for port, host in ((0, 0), (1, 2)):
        of_port = [row for row in pauses if row[0] == f"hosts.1 port {port} -> hosts.{host}"]
        said = [row[1].split(", ")[1] for row in of_port]
        assert said[0] == "pause for 65535 quanta"
        assert "end of the pause" in said
        assert {row[3] for row in of_port} == {"02:00:00:00:00:01"}, "the card's station"
    assert {row[0] for row in pauses} == {f"hosts.1 port {port} -> hosts.{host}" for port, host in ((0, 0), (1, 2))}
    dropped = interfaces(tshark, two_ports(nicety, tmp_path, SUMS, 1500, "--lossy"))
    assert {f"dropped by hosts.1 port {port}" for port in (0, 1)} <= set(dropped)


@pytest.mark.parametrize(
    "command",
    [
        ["latency", "--nic", "niagara2-niu", "--sizes", "8,64,4Ki", "--iterations", "2"],
        [
            "stream",
            "--nic",
            "niagara2-niu,niagara2-neptune",
            "--connections",
            "3",
            "--warmup",
            "0ns",
            "--duration",
            "2ms",
        ],
    ],
)
def test_runs_of_one_file_are_no_retransmissions(
    nicety: Callable[..., Result], tshark: Callable[..., str], tmp_path: Path, command: list[str]
) -> None:
    plain = nicety("bench", *command, "--json")
    done = nicety("bench", *command, "--capture", "runs.pcapng", "--json")
    assert done.status == 0, done.stderr
    assert done.json() == plain.json(), "a capture changes no run"
    file = tmp_path / "runs.pcapng"
    flags = "tcp.analysis.retransmission || tcp.analysis.out_of_order || tcp.analysis.reused_ports || _ws.malformed"
    assert tshark("-r", file, "-Y", flags) == ""
    sums = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    assert tshark(*sums, "-r", file, "-Y", "tcp.checksum.status == 0 || ip.checksum.status == 0") == ""
    runs: dict[str, set[str]] = {}
    for name, stream in fields(tshark, file, "frame.interface_name", "tcp.stream"):
        runs.setdefault(name.partition(", ")[2], set()).add(stream)
    assert len(runs) > 1
    assert sum(map(len, runs.values())) == len(set.union(*runs.values())), "no connection is of two runs"


def test_a_full_disk_leaves_no_half_capture(tmp_path: Path) -> None:
    """Files of a process may have 4 KiB: the same effect as a full disk."""
    script = """
import resource, sys
import nicety

async def main(host):
    buffer = host.alloc(int(sys.argv[1]))
    if host.rank == 0:
        await host.send(buffer, to=1, tag=1)
    else:
        await host.recv(buffer, source=0, tag=1)

with nicety.Capture("full.pcapng"):
    cluster = nicety.Cluster(2, "spin-discrete")
    if sys.argv[2] == "second":
        cluster.run(main)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    sys.argv[1] = 100_000
    try:
        cluster.run(main)
    except nicety.InputError as error:
        print(error)
"""
    (tmp_path / "script.py").write_text(script)
    for when in ("first", "second"):
        done = subprocess.run(
            [sys.executable, "script.py", "8", when],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "full.pcapng: cannot write it (File too large (os error 27))\n"
        left = sorted(path.name for path in tmp_path.iterdir() if path.name != "script.py")
        if when == "first":
            assert left == []
        else:
            assert left == ["full.pcapng"]
            with package.Capture(tmp_path / "one.pcapng"):
                package.Cluster(2, "spin-discrete").run(ping)
            assert (tmp_path / "full.pcapng").read_bytes() == (tmp_path / "one.pcapng").read_bytes()


async def ping(host: package.Host) -> None:
    """Rank 0 sends 8 bytes to rank 1."""
    buffer = host.alloc(8)
    if host.rank == 0:
        await host.send(buffer, to=1, tag=1)
    else:
        await host.recv(buffer, source=0, tag=1)

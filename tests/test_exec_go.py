"""Programs in Go with channels to processes on the card, compared with the same ones in Python."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety.build.compiler import library_source

GO = shutil.which("go") or "/usr/local/go/bin/go"
pytestmark = [
    pytest.mark.xdist_group("go"),
    pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux"),
    pytest.mark.skipif(shutil.which(GO) is None, reason="there is no Go toolchain (go)"),
]

ROOT = Path(__file__).parent.parent
MODULE = ROOT / "go" / "nicety"
CHECKS = Path(__file__).parent / "programs" / "goroutines"
NICETY = [sys.executable, "-m", "nicety"]
ISA = "rv32ia_zicsr_zmmul_zba_zbb"


def go(folder: Path, *words: str) -> str:
    """The output of the Go command. It needs no network, and no C compiler."""
    options = {"CGO_ENABLED": "0", "GOPROXY": "off", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local"}
    environment = {**os.environ, **options}
    done = subprocess.run(
        [GO, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Programs:
    """Go programs and the card's processes, built once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        go(MODULE, "build", "-o", f"{folder}/", "./examples/...")
        go(CHECKS, "build", "-o", f"{folder}/checks", ".")
        self.source = {
            "ping": MODULE / "examples" / "ping" / "card" / "ping.c",
            "pcsa": library_source("nfp/pcsa.c"),
            "checks": CHECKS / "card" / "processes.c",
        }
        for name, source in self.source.items():
            nicety.compile_handlers([source], isa=ISA, output=folder / f"{name}.elf")

    def run(self, name: str, *words: str, nic: str = "nfp-4000", options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        """Status, stdout before the report and stderr of a program with free reads of the clock."""
        elf = self.folder / f"{name}.elf"
        command = [*NICETY, "exec", "--nic", nic, "--launcher", "none", "--clock-cost", "0ps", *options]
        command += ["--", str(self.folder / name), str(elf), *words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout.split("# nicety")[0], done.stderr

    def prints(self, name: str, *words: str, **more: Any) -> list[str]:
        status, out, err = self.run(name, *words, **more)
        assert (status, err) == (0, "")
        return out.splitlines()


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("go"))


def python(main: Callable[[nicety.Host], Any]) -> Any:
    return nicety.Cluster(1, "nfp-4000").run(main).results[0]


def test_ping_is_that_of_a_python_program(programs: Programs) -> None:
    processes = nicety.Processes(programs.source["ping"])

    async def main(host: nicety.Host) -> list[str]:
        size, lines = 100_000, []
        process = host.channels.start(processes, "ping", microengine=0, args=(7, 3, size))
        channel = await host.channels.open().subscribe(7)
        for number in range(1, 4):
            begun = host.now_ps
            await channel.send(number.to_bytes(4, "little"))
            reply = int.from_bytes(await channel.receive(4), "little")
            lines.append(f"{number} -> {reply} {host.now_ps - begun} ps")
        there, back = host.alloc(size), host.alloc(size)
        begun = host.now_ps
        await channel.send_ind(there)
        await channel.receive_ind(back)
        lines.append(f"{size} bytes there and back {host.now_ps - begun} ps")
        return [*lines, f"the process returned {await process.finished()}"]

    lines = python(main)
    assert lines[2].startswith("3 -> 4 ")
    assert programs.prints("ping") == lines


def test_pcsa_is_that_of_the_application(programs: Programs, tmp_path: Path) -> None:
    dice = random.Random(1)
    sources = [dice.randbytes(4) for _ in range(20_000)]
    capture = tmp_path / "capture.pcap"
    packets = [bytes(12) + b"\x08\x00\x45" + bytes(11) + source + bytes(30) for source in sources * 3]
    packets.insert(5, bytes(60))
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    capture.write_bytes(head + b"".join(struct.pack("<IIII", 0, 0, len(each), len(each)) + each for each in packets))
    report = nicety.count_sources(capture, through="channels", hash="crc")
    assert programs.prints("pcsa", str(capture)) == [
        "addresses  60000",
        f"estimate   {report['estimate']:.1f}",
        f"card time  {report['card_time_ns'] * 1000:.0f} ps",
    ]
    capture.write_bytes(capture.read_bytes()[:-1])
    status, _, err = programs.run("pcsa", str(capture))
    assert status == 2
    assert "ends within its packet" in err


def test_goroutines_are_threads_of_a_python_program(programs: Programs) -> None:
    processes = nicety.Processes(programs.source["checks"])

    async def main(host: nicety.Host) -> list[str]:
        lines: list[str] = []

        async def talk(channel: Any) -> None:
            for said in (b"a packet", b"a letter"):
                await channel.send(said)
                reply = await channel.receive(8)
                lines.append(f"{channel.target} {reply.decode()} {host.now_ps - begun}")

        channels = []
        for target in range(4):
            host.channels.start(processes, "shout", microengine=target, args=(target, 2))
            channels.append(await host.channels.open().subscribe(target))
        begun = host.now_ps
        await host.gather(*(talk(channel) for channel in channels))
        return lines

    assert programs.prints("checks", "gather") == python(main)


def test_select_and_timeouts_are_those_of_a_python_program(programs: Programs) -> None:
    processes = nicety.Processes(programs.source["checks"])

    async def main(host: nicety.Host) -> list[str]:
        for target, cycles in ((1, 60_000), (2, 30_000)):
            host.channels.start(processes, "late", microengine=target, args=(target, cycles))
        begun, device, lines = host.now_ps, host.channels.open(), []
        slow, fast = await device.subscribe(1), await device.subscribe(2)
        with pytest.raises(nicety.TimedOut):
            await slow.receive(4, timeout_ns=10_000)
        for _ in range(2):
            number, message = await device.select([slow.message(4), fast.message(4)], timeout_ns=500_000)
            lines.append(f"{number} {message[0]} {host.now_ps - begun}")
        with pytest.raises(nicety.TimedOut):
            await device.select([slow.message(4)], timeout_ns=5000)
        return [*lines, f"true {host.now_ps - begun}"]

    assert programs.prints("checks", "either") == python(main)


def test_indirect_messages_are_selected(programs: Programs) -> None:
    processes = nicety.Processes(programs.source["checks"])

    async def main(host: nicety.Host) -> list[str]:
        for target, cycles in ((1, 60_000), (2, 30_000)):
            host.channels.start(processes, "bulk", microengine=target, args=(target, cycles, 8000))
        begun, device, lines = host.now_ps, host.channels.open(), []
        slow, fast = await device.subscribe(1), await device.subscribe(2)
        buffers = [host.alloc(8000), host.alloc(8000)]
        for _ in range(2):
            number, _ = await device.select([slow.bulk_message(buffers[0]), fast.bulk_message(buffers[1])])
            lines.append(f"{number} true {host.now_ps - begun}")
        return lines

    assert programs.prints("checks", "bulk") == python(main)


@pytest.mark.parametrize("part", ["refusals", "joins"])
def test_a_program_goes_on_from_errors(programs: Programs, part: str) -> None:
    assert programs.prints("checks", part) == []


def test_runs_are_alike(programs: Programs) -> None:
    assert programs.prints("checks", "sharing") == ["1000"]
    assert programs.prints("checks", "passing") == ["2 1 0 [2 1 0] 10µs"]
    first, *others = [programs.prints("checks", "orders") for _ in range(3)]
    assert others == [first, first]
    # At the same instant, in order of their start.
    assert first[0].startswith("[0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 0 3 6 9 12 15 1 4 ")


def test_the_cards_memory_and_traps(programs: Programs) -> None:
    status, out, err = programs.run("checks", "memory")
    assert (status, out) == (2, "42 [42 0 0 0 5 0 0 0] <nil>\n")
    assert "9 bytes for a part of a memory of 8 bytes" in err
    status, out, err = programs.run("checks", "trap")
    assert status == 1
    for text in (out, err):
        assert "process twice on microengine 0, context 0: load of 4 bytes from 0x0" in text


def test_hosts_meet_and_goroutines_compute_side_by_side(programs: Programs) -> None:
    # In either order, since processes write by themselves.
    lines = programs.prints("checks", "computes", options=("-n", "2"))
    meeting = {line.rsplit(" ", 1)[1] for line in lines if "goes on" in line}
    assert sorted(line for line in lines if "computed" in line) == [
        "0 of 2 computed until 10000000",
        "1 of 2 computed until 11000000",
    ]
    assert len(meeting) == 1
    assert int(meeting.pop()) >= 11_000_000


@pytest.mark.parametrize(
    ("part", "status", "parts"),
    [
        (
            "deadlock",
            1,
            [
                "program 'rank 0', waits since",
                "for the end of its thread 1",
                "program 'rank 0, thread 1', waits since",
                "for the process at target 7 to write 8 bytes",
            ],
        ),
        ("stray", 1, ["takes no part in virtual time", "start it with nicety.Go", "main.stray"]),
        ("stuck", 1, ["the running goroutine waits for another one", "wait by Task.Wait", "main.stuck("]),
        ("gone", 1, ["the process of rank 0 ended with status 3 before it had closed the", "nicety.Main in Go"]),
        ("fails", 1, ["nicety: rank 0: nobody waited for this"]),
        ("input", 2, ["nicety: rank 0: invalid argument: this one"]),
    ],
)
def test_a_program_that_cannot_end_is_told_why(programs: Programs, part: str, status: int, parts: list[str]) -> None:
    done, _, err = programs.run("checks", part)
    assert done == status
    assert [each for each in parts if each not in err] == []


@pytest.mark.parametrize("nic", ["spin-discrete", "ethernet-100g", "qnix"])
def test_other_cards_have_no_channels(programs: Programs, nic: str) -> None:
    status, out, err = programs.run("ping", nic=nic)
    assert (status, out) == (2, "")
    assert "has no processes and channels" in err
    assert "for example nfp-4000" in err


def test_a_program_by_itself_says_how_it_is_started(programs: Programs) -> None:
    done = subprocess.run([programs.folder / "ping"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "nicety exec --nic nfp-4000 --launcher none" in done.stderr


def test_other_static_programs_are_refused(programs: Programs) -> None:
    program = programs.folder / "other"
    contents = (programs.folder / "ping").read_bytes()
    assert contents[:4096].count(b"Go\0\0") == 1
    program.write_bytes(contents.replace(b"Go\0\0", b"No\0\0", 1))
    program.chmod(0o755)
    with pytest.raises(nicety.InputError, match="it is linked statically, so no library can be loaded into it"):
        nicety.run_processes([program], launcher="none", nic="nfp-4000")


def test_a_clock_costs_what_is_said(programs: Programs) -> None:
    status, out, _ = programs.run("ping", options=("--clock-cost", "40ns"))
    assert status == 0
    costly = [int(ps) for ps in re.findall(r"(\d+) ps", out)]
    free = [int(ps) for line in programs.prints("ping") for ps in re.findall(r"(\d+) ps", line)]
    # In each pair of reads the first one's cost is outside, except for the call that charges it.
    assert [one - other for one, other in zip(costly, free, strict=True)] == [40_000] * 4


def test_computing_counts_where_it_is_measured(programs: Programs) -> None:
    status, out, _ = programs.run("ping", options=("--compute", "measured"))
    assert status == 0
    free = programs.prints("ping")
    for costly, other in zip(out.splitlines()[:3], free, strict=False):
        assert int(costly.split()[3]) > int(other.split()[3])


def test_the_report_counts_messages(programs: Programs, tmp_path: Path) -> None:
    trace = tmp_path / "ping.pftrace"
    command = [*NICETY, "exec", "--nic", "nfp-4000", "--launcher", "none", "--json", "--trace", str(trace), "--"]
    command += [str(programs.folder / "ping"), str(programs.folder / "ping.elf")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (rank,) = json.loads(done.stdout)["ranks"]
    assert (rank["sends"], rank["sent_bytes"], rank["receives"]) == (4, 100_012, 4)
    assert trace.stat().st_size > 1000


def test_the_module_is_tested_vetted_and_formatted() -> None:
    for folder in (MODULE, CHECKS):
        assert go(folder, "vet", "./...") == ""
        gofmt = Path(shutil.which(GO) or GO).resolve().parent / "gofmt"
        assert subprocess.run([gofmt, "-l", folder], capture_output=True, text=True, check=True).stdout == ""
    # A C compiler, called by a test in Go, compares layouts with the header.
    assert "ok" in go(MODULE, "test", "./...")

"""The checker of processes on flow processors: programs with one bug each and their twins, the library, the command."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nicety import check_program
from test_check import at_bug

ROOT = Path(__file__).parent.parent
SUITE = ROOT / "tests/check/processes"
PROGRAMS: list[dict[str, Any]] = tomllib.loads((SUITE / "suite.toml").read_text())["program"]


def findings(program: dict[str, Any], defines: str) -> list[Any]:
    """The findings of a program of the suite."""
    arguments = [str(SUITE / f"{program['name']}.c"), defines, *program["host"].split()]
    return list(check_program(SUITE / "host.py", arguments=arguments, nics=["nfp-4000"])["findings"])


def test_the_table_names_the_marked_lines() -> None:
    sources = {path.stem: path.read_text().splitlines() for path in SUITE.glob("*.c")}
    marked = {
        name: [number for number, line in enumerate(lines, 1) if line.endswith("// bug")]
        for name, lines in sources.items()
    }
    assert {program["name"]: program["lines"] for program in PROGRAMS} == marked
    assert len(PROGRAMS) == 30


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program["name"])
def test_a_seeded_bug_is_found_and_its_twin_has_no_finding(program: dict[str, Any]) -> None:
    found = findings(program, "BUG")
    assert any(at_bug(finding, program) for finding in found), found
    assert findings(program, "") == []


CHANNELS = """
import sys
import nicety

nodes = 1
program = nicety.Processes(sys.argv[1])
memory = 0x80000000


async def main(host):
    device = host.channels.open()

    async def channel(target, name, *args):
        host.channels.start(program, name, microengine=target, args=(target, *args))
        return await device.subscribe(target)

    echo = await channel(1, "channels_echo", 8, 2)
    for _ in range(2):
        await echo.send(bytes(8))
        await echo.receive(8)
    bulk = await channel(2, "channels_echo_ind", 5000, 2, memory)
    for _ in range(2):
        await bulk.send_ind(host.alloc(5000))
        await bulk.receive_ind(host.alloc(5000))
    await (await channel(3, "channels_write", 8, 1)).receive(8)
    await (await channel(4, "channels_read", 8, 1)).send(bytes(8))
    host.channels.start(program, "channels_alternate", microengine=5, args=(10, 8, 2, 3))
    first, second = await device.subscribe(10), await device.subscribe(11)
    for each in (first, second, first):
        await each.send(bytes(8))
        await each.receive(8)
"""
BENCH = """
import sys
import nicety

nodes = 1
program = nicety.Processes(sys.argv[1])
memory = 0x80000000


async def main(host):
    device = host.channels.open()
    names = ("bench_read", "bench_write", "bench_read_ind", "bench_write_ind")
    for target, name in enumerate(names):
        size = 56 if target < 2 else 5000
        args = (target, size, 2, memory + 0x10000 * target)
        host.channels.start(program, name, microengine=target, args=args)
    read, write, read_ind, write_ind = [await device.subscribe(target) for target in range(4)]
    for _ in range(2):
        await read.send(bytes(56))
        await write.receive(56)
        await read_ind.send_ind(host.alloc(5000))
        await write_ind.receive_ind(host.alloc(5000))
"""
PCSA = """
import sys
import nicety

nodes = 1
program = nicety.Processes(sys.argv[1])
MEMBERS, CONTEXTS, COUNT = 2, 3, 200
MERGED, ARRIVED = 0x40000000, 0x40002000


async def main(host):
    device = host.channels.open()
    for island in range(2):
        first, target = 12 * island, 1 + island
        for number in range(MEMBERS * CONTEXTS):
            member, context = divmod(number, CONTEXTS)
            if number == 0:
                name, args = "pcsa_feeder", (target, MEMBERS, CONTEXTS, 2, MERGED, ARRIVED)
            else:
                name, args = "pcsa_worker", (first, number - 1, MEMBERS * CONTEXTS - 1, MERGED)
            host.channels.start(program, name, microengine=first + member, context=context, args=args)
    channels = [await device.subscribe(1 + island) for island in range(2)]

    async def feed(channel):
        for block in range(3):
            await channel.send(COUNT.to_bytes(4, "little"))
            buffer = host.alloc(4 * COUNT)
            buffer.array[:] = [(block * 7 + i * 13) % 251 for i in range(4 * COUNT)]
            await channel.send_ind(buffer)
        await channel.send(bytes(4))

    await host.gather(*(feed(channel) for channel in channels))
    return int.from_bytes(await channels[0].receive(4), "little")
"""
SHARED = """
import sys
import nicety

nodes = 1
program = nicety.Processes(sys.argv[1])


async def main(host):
    for context in (1, 2, 3):
        host.channels.start(program, "pcsa_sharer", microengine=0, context=context, contexts=4)
    host.channels.start(program, "pcsa_share", microengine=0, context=0, args=(50, 4))
    host.channels.start(program, "pcsa_count", microengine=1, args=(0x80000000, 40))
"""
SALESMAN = """
import struct
import sys
import nicety

nodes = 1
program = nicety.Processes(sys.argv[1])
CITIES, CLIMBERS, JOB = 8, 3, 0x40000000


async def main(host):
    table = int(sys.argv[2])
    host.channels.start(program, "tsp_manager", microengine=0, contexts=1, args=(JOB, 1))
    for core in range(1, CLIMBERS + 1):
        args = (JOB, core - 1, 1, CLIMBERS)
        host.channels.start(program, "tsp_climber", microengine=core, contexts=1, args=args)
    channel = await host.channels.open().subscribe(1)
    for job in range(2):
        order = host.alloc(64 + 4 * 256)
        received = JOB + 0x100000
        looked_up = received if table != 4 else 0x20000100
        bytes_ = 2 * 64 if table != 4 else 4 * 64
        head = (CITIES, 6, job * 6, 1, table, CLIMBERS, received, looked_up, bytes_, *[0] * 7)
        cities = [(17 * i % 31) | (13 * i % 29) << 16 for i in range(CITIES)] + [0] * (256 - CITIES)
        order.array[:] = list(struct.pack("<272I", *head, *cities))
        await channel.send_ind(order)
        if "table" in sys.argv[1]:
            distances = host.alloc(bytes_)
            distances.array[:] = [1 + i % 7 if i % (bytes_ // 64) == 0 else 0 for i in range(bytes_)]
            await channel.send_ind(distances)
        await channel.receive(8)
        await channel.receive_ind(host.alloc(CITIES))
"""
MESSAGES = """
async def main(host):
    other = 1 - host.rank
    for size in (8, 1000, 200_000):
        buffer, arrived = host.alloc(size), host.alloc(size)
        if host.rank == 0:
            await host.send(buffer, to=other)
        await host.recv(arrived, source=other)
        if host.rank == 1:
            await host.send(buffer, to=other)
"""
LIBRARY = [
    (CHANNELS, ["channels.c"]),
    (BENCH, ["channel_bench.c"]),
    (PCSA, ["pcsa.c"]),
    (SHARED, ["pcsa.c"]),
    (SALESMAN, ["tsp.c", "0"]),
    (SALESMAN, ["tsp.c", "1"]),
    (SALESMAN, ["tsp_table.c", "2"]),
    (SALESMAN, ["tsp_table.c", "4"]),
    (MESSAGES, []),
]


@pytest.mark.parametrize(
    ("source", "arguments"),
    LIBRARY,
    ids=["channels", "bench", "pcsa", "pcsa-share", "tsp", "tsp-filled", "tsp-table", "tsp-copied", "messages"],
)
@pytest.mark.parametrize("schedules", [1, 3])
def test_processes_of_the_library_have_no_findings(
    tmp_path: Path, source: str, arguments: list[str], schedules: int
) -> None:
    path = tmp_path / "host.py"
    path.write_text(source)
    arguments = [str(ROOT / "handlers/nfp" / word) if word.endswith(".c") else word for word in arguments]
    report = check_program(path, arguments=arguments, nics=["nfp-4000"], schedules=schedules)
    assert report["findings"] == []
    assert report["runs"] > 0


HOST = """
import nicety

nodes = 1
program = nicety.Processes("PATH", defines=["BUG"])


async def main(host):
    for core in (0, 12):
        host.channels.start(program, "count", microengine=core, args=(20,))
    print("started")
    await host.compute(ns=100_000)
    return {"at": host.now_ns}
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A program of hosts with a race."""
    path = tmp_path / "host.py"
    path.write_text(HOST.replace("PATH", str(SUITE / "race_counter.c")))
    return path


def test_the_command_prints_findings_and_ends_with_status_1(nicety: Callable[..., Any], host: Path) -> None:
    failed = nicety("check", host, "--nic", "nfp-4000")
    assert failed.status == 1
    lines = failed.stdout.splitlines()
    assert lines[0] == "started"
    assert lines[1].startswith("race_counter.c:8: race: process count on microengine "), lines
    assert "    in count at race_counter.c:8" in lines
    assert "  advice: order the accesses by a signal or a channel, or write an atomic operation" in failed.stdout
    assert "; 2 processes, " in lines[-1]
    documents = nicety("check", host, "--nic", "nfp-4000", "--schedules", "3", "--json")
    report = json.loads(documents.stdout)
    assert (documents.status, report["runs"], report["schedules"]) == (1, 6, 3)
    assert {finding["kind"] for finding in report["findings"]} == {"race"}
    names = {finding["at"]["process"] for finding in report["findings"]}
    assert names <= {f"count on microengine {core}, context 0" for core in (0, 12)}
    assert documents.stderr == "started\n"


def test_a_check_changes_no_time_and_the_same_seed_gives_the_same_report(
    nicety: Callable[..., Any], host: Path, tmp_path: Path
) -> None:
    host.write_text(host.read_text().replace("return {", "print(host.now_ns, 'ns'); return {"))
    plain = nicety("run", host, "--nic", "nfp-4000")
    checked = nicety("check", host, "--nic", "nfp-4000")
    (at,) = [line for line in plain.stdout.splitlines() if line.endswith(" ns")]
    assert at in checked.stdout
    again = [check_program(host, nics=["nfp-4000"], schedules=3) for _ in range(2)]
    assert again[0] == again[1]


def test_a_trap_and_a_deadlock_with_findings_do_not_end_the_check(tmp_path: Path) -> None:
    (tmp_path / "trap.c").write_text(
        "#include <nfp.h>\n__process uint32_t trap(void) { return *(volatile uint32_t *)64; }\n"
    )
    path = tmp_path / "trap.py"
    path.write_text(
        "import nicety\n\nnodes = 1\n\n\nasync def main(host):\n"
        f"    program = nicety.Processes({str(tmp_path / 'trap.c')!r})\n"
        "    host.channels.start(program, 'trap', microengine=0)\n"
        "    await (await host.channels.open().subscribe(1)).receive(4)\n"
    )
    (finding,) = check_program(path, nics=["nfp-4000"])["findings"]
    assert (finding["kind"], finding["at"]["place"]["line"]) == ("out-of-bounds", 2)
    assert finding["at"]["process"] == "trap on microengine 0, context 0"


def test_invalid_arguments_are_refused(nicety: Callable[..., Any], host: Path, tmp_path: Path) -> None:
    none = tmp_path / "none.py"
    none.write_text("nodes = 1\n\n\nasync def main(host):\n    pass\n")
    for arguments, status, text in [
        ([host, "--nic", "nfp-4000", "--schedules", "0"], 2, "schedules is 1 to 10000, not 0"),
        ([host, "--nic", "nfp-4000", "--fuzz", "-1"], 2, "--fuzz: seconds are 0 or more, not -1.0"),
        ([host, "--nic", "nfp-4000", "--header", "count"], 2, "--header: for handlers; a program of hosts has"),
        ([host, "--nic", "nfp-4000,spin-discrete"], 2, "--nic: a check is of one card, and 2 are named"),
        ([host, "--nic", "spin-discrete"], 2, "spin-discrete"),
        ([tmp_path / "missing.py", "--nic", "nfp-4000"], 2, "missing.py: no such file"),
        ([none, "--nic", "nfp-4000"], 1, "no process has run on a card; start one with host.channels.start"),
    ]:
        refused = nicety("check", *arguments)
        assert refused.status == status, (arguments, refused.stderr)
        assert text in refused.stderr, refused.stderr

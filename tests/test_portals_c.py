"""Programs in C with Portals 4 as the programs of hosts, compared with the same ones in Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nicety
from nicety.build.compiler import library_source

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux")

NICETY = [sys.executable, "-m", "nicety"]
SOURCE = Path(__file__).parent / "programs" / "portals.c"
CARDS = ["spin-discrete", "spin-integrated"]
SIZES = [8, 4096, 65536]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("portals") / "portals"
    return nicety.compile_host([SOURCE], output=path)


def run(program: Path, *words: str, nic: str = "spin-discrete", options: tuple[str, ...] = ()) -> tuple[int, str, str]:
    """Status, stdout and stderr of the program on two hosts."""
    command = [*NICETY, "exec", "-n", "2", "--nic", nic, "--launcher", "none", *options, "--", str(program), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def lines(program: Path, *words: str, nic: str) -> list[list[float]]:
    """The numbers that the program prints before the report; the cost of reading a clock is negligible."""
    status, out, err = run(program, *words, nic=nic, options=("--clock-cost", "1ps"))
    assert status == 0, err
    return [[float(word) for word in line.split()] for line in out.split("#")[0].splitlines()]


def pingpong(size: int, elf: bytes | None = None) -> Callable[[nicety.Host], Any]:
    """Half a round trip in ns, answered by the host or by the card's handlers."""

    async def main(host: nicety.Host) -> float:
        portals = host.portals
        counter, pt = portals.ct_alloc(), portals.pt_alloc(pt=1)
        memory, out = host.alloc(65536), host.alloc(65536)
        options = ["op_put", "event_ct_comm", "event_link_disable"]
        offloaded = elf is not None
        attached = None
        if offloaded and host.rank == 1:
            state = (8).to_bytes(8, "little") + (0).to_bytes(4, "little") + (4096).to_bytes(4, "little") + bytes(8)
            attached = portals.attach(nicety.Handlers(library_source("pingpong_store.c")), state=state)
        bits = 8 if offloaded and host.rank == 0 else 7
        await portals.me_append(memory, pt=pt, match_bits=bits, ct=counter, options=options, handlers=attached)
        md = portals.md_bind(out)
        await host.barrier()
        start = host.now_ps
        for number in range(10):
            if host.rank == 0:
                await portals.put(md, size, to=1, pt=pt, match_bits=7)
            if host.rank == 0 or not offloaded:
                await portals.ct_wait(counter, number + 1)
            if host.rank == 1 and not offloaded:
                await portals.put(md, size, to=0, pt=pt, match_bits=7)
        return (host.now_ps - start) / 20_000

    return main


@pytest.mark.parametrize("nic", CARDS)
def test_puts_take_as_long_as_in_python(program: Path, nic: str) -> None:
    measured = lines(program, "pingpong", nic=nic)
    assert [int(size) for size, _ in measured] == SIZES
    for size, ns in measured:
        model = nicety.Cluster(2, nic).run(pingpong(int(size))).results[0]
        # The program's clock has whole nanoseconds.
        assert abs(ns - model) <= 0.11, (size, ns, model)


@pytest.mark.parametrize("nic", CARDS)
def test_handlers_take_as_long_as_in_python(program: Path, tmp_path: Path, nic: str) -> None:
    elf = tmp_path / "pong.elf"
    compiled = nicety.compile_handlers([library_source("pingpong_store.c")], output=elf)
    for size, ns in lines(program, "handlers", str(elf), nic=nic):
        model = nicety.Cluster(2, nic).run(pingpong(int(size), compiled.elf)).results[0]
        assert abs(ns - model) <= 0.11, (size, ns, model)


@pytest.mark.parametrize("nic", CARDS)
def test_handlers_change_the_memory_of_the_process(program: Path, tmp_path: Path, nic: str) -> None:
    elf = tmp_path / "accumulate.elf"
    source = library_source("accumulate.c")
    nicety.compile_handlers([source], output=elf)
    ((ns,),) = lines(program, "accumulate", str(elf), nic=nic)

    async def main(host: nicety.Host) -> float:
        portals = host.portals
        counter, memory = portals.ct_alloc(), host.alloc(65536)
        pt = portals.pt_alloc(pt=1)
        # The time of arithmetic in software depends on these.
        memory.view("f4")[:3000] = np.arange(3000) % (7 if host.rank else 5)
        if host.rank == 1:
            handlers = portals.attach(nicety.Handlers(source))
            await portals.me_append(
                memory, pt=pt, match_bits=7, options=["op_put", "event_link_disable"], handlers=handlers
            )
            await host.barrier()
            return 0
        md = portals.md_bind(memory, options=["event_ct_ack"], ct=counter)
        await host.barrier()
        start = host.now_ps
        await portals.put(md, 12000, to=1, pt=pt, match_bits=7, ack="ct_ack")
        await portals.ct_wait(counter, 1)
        return (host.now_ps - start) / 1000

    assert abs(ns - nicety.Cluster(2, nic).run(main).results[0]) <= 1.1


@pytest.mark.parametrize("nic", CARDS)
@pytest.mark.parametrize("part", ["events", "overflow", "atomics", "triggers", "refusals"])
def test_every_part_does_what_the_specification_says(program: Path, part: str, nic: str) -> None:
    status, _, err = run(program, part, nic=nic)
    assert (status, err) == (0, "")


@pytest.mark.parametrize("seed", range(100 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 4))
def test_wild_arguments_are_refused(program: Path, seed: int) -> None:
    made = [run(program, "wilds", str(seed), nic=CARDS[seed % 2], options=("--json",)) for _ in range(2)]
    assert made[0][0] == 0, made[0][2]
    assert made[0] == made[1]


@pytest.mark.parametrize("nic", CARDS)
def test_two_runs_are_alike(program: Path, nic: str) -> None:
    made = [run(program, "pingpong", nic=nic, options=("--json",)) for _ in range(2)]
    assert made[0] == made[1]
    report = json.loads(made[0][1])
    assert [(row["sends"], row["sent_bytes"], row["receives"]) for row in report["ranks"]] == [(30, 696400, 30)] * 2


def test_runs_that_fail_say_why(program: Path) -> None:
    for words, patience, expected in [
        (
            "leave",
            "100",
            "the process of rank 1 ended with status 0 before it had closed the network (by MPI_Finalize",
        ),
        ("killed", "100", "the process of rank 1 ended, by signal 9 (SIGKILL), before it had closed the network"),
        ("lost", "100", "a counter to reach 1; it is at 0"),
        ("poll", "1000", "an event or a count of Portals"),
        ("unmapped", "100", "reads 64 bytes at 0x40 of its process, which cannot be reached"),
    ]:
        status, _, err = run(program, words, options=("--patience", patience))
        assert status == 1, (words, err)
        assert expected in err, (words, err)
        assert "Traceback" not in err


def test_a_card_without_portals_says_what_to_choose(program: Path) -> None:
    status, _, err = run(program, "events", nic="qnix")
    assert status == 1
    assert "nicety: PtlNIInit: a card of design qnix has no Portals interface" in err
    assert "name a card of design portals, for example spin-discrete" in err


def test_a_program_without_a_host_says_how_to_start_it(program: Path) -> None:
    done = subprocess.run([program, "events"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 3
    assert "nicety exec -n 2 --nic spin-discrete --launcher none" in done.stderr


def test_any_compiler_builds_one(tmp_path: Path) -> None:
    flags = subprocess.run(
        [*NICETY, "cc", "--host", "--flags"], capture_output=True, text=True, check=True
    ).stdout.split()
    subprocess.run([shutil.which("cc") or "cc", SOURCE, *flags, "-o", tmp_path / "own"], check=True)
    assert run(tmp_path / "own", "events")[0] == 0
    subprocess.run(
        [*NICETY, "cc", "--host", SOURCE, "--cc", f"{sys.executable} -m ziglang cc", "-o", tmp_path / "zig"], check=True
    )
    assert run(tmp_path / "zig", "events")[0] == 0


def test_invalid_programs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text("int main(void) { return nowhere(); }\n")
    (tmp_path / "program").mkdir()
    for words, expected in [
        (["nowhere.c"], "nowhere.c: no such file"),
        (["wrong.c"], "wrong.c: no program of a host; the compiler's messages are above"),
        (["wrong.c", "-o", "program"], "program: this is a folder"),
        (["wrong.c", "--cc", "no-such-cc"], "no such program on the PATH"),
        (["wrong.c", "--isa", "rv32i"], "a program of a host has no --isa"),
        ([], "no source to compile"),
    ]:
        done = subprocess.run(
            [*NICETY, "cc", "--host", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2, done.stderr
        assert expected in done.stderr, done.stderr
        assert "Traceback" not in done.stderr

"""Processes on a card with microengines: their start, their results, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import nicety

SOURCE = """\
#include <nfp.h>

static uint32_t runs;  /* one for each microengine */

__process uint32_t sum(uint32_t address, uint32_t words) {
    const volatile uint32_t *from = (const volatile uint32_t *)address;
    uint32_t total = 0;
    for (uint32_t i = 0; i < words; i++) total += from[i];
    runs++;
    return total;
}

__process uint32_t sleeper(uint32_t signal) {
    nfp_wait_all(1u << signal);
    return signal;
}

__process uint32_t waker(uint32_t microengine, uint32_t context, uint32_t signal) {
    nfp_signal(microengine, context, signal);
    return runs;
}

__process uint32_t eight(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f, uint32_t g,
                         int32_t h) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * (uint32_t)(-h);
}

__process uint32_t stray(uint32_t address) {
    return *(const volatile uint32_t *)address;
}
"""
STRAY_LINE = 1 + SOURCE.splitlines().index("    return *(const volatile uint32_t *)address;")


@pytest.fixture
def program(tmp_path: Path) -> nicety.Processes:
    source = tmp_path / "processes.c"
    source.write_text(SOURCE)
    return nicety.Processes(source)


def alone(main: Any, **options: Any) -> nicety.Run:
    return nicety.Cluster(1, "nfp-4000", **options).run(main)


def test_a_process_computes_on_memory_that_the_host_wrote(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> Any:
        table = host.channels.card_memory("emem", 64, length_bytes=40)
        table.write(b"".join(value.to_bytes(4, "little") for value in range(1, 11)))
        assert len(table) == 40
        assert table.address == 0x8000_0040
        process = host.channels.start(program, "sum", microengine=3, context=2, contexts=3, args=(table.address, 10))
        begun = host.now_ps
        total = await process.finished()
        return total, host.now_ps - begun, table.read()[:8]

    run = alone(main)
    total, took, head = run.results[0]
    assert (total, head) == (55, b"\x01\0\0\0\x02\0\0\0")
    [microengine] = run.nodes[0].channels.microengines
    [process] = microengine.processes
    assert (microengine.microengine, process.context, process.name, process.returned) == (3, 2, "sum", 55)
    assert process.references == 10
    # Ten loads from EMEM of 325 cycles at 600 MHz, and some instructions around them.
    assert process.cycles_asleep == 3250
    cycles = process.cycles_computing + process.cycles_asleep
    assert process.cycles_ready == 0
    assert took == -(-cycles * 10_000 // 6)
    assert microengine.cycles_computing == process.cycles_computing
    assert microengine.cycles_asleep == process.cycles_asleep


def test_processes_wait_for_each_other_and_are_started_during_the_run(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> Any:
        sleeping = host.channels.start(program, "sleeper", microengine=0, args=(5,))
        await host.compute(ns=1000)
        waking = host.channels.start(program, "waker", microengine=59, context=7, args=(0, 0, 5))
        return await sleeping.finished(), await waking.finished(), await sleeping.finished()

    run = alone(main)
    assert run.results[0] == (5, 0, 5)
    [first, last] = run.nodes[0].channels.microengines
    assert first.processes[0].cycles_asleep >= 600
    assert [process.context for process in last.processes] == [7]


def test_arguments_are_words_with_or_without_a_sign(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> int:
        return await host.channels.start(program, "eight", microengine=0, args=(1, 2, 3, 4, 5, 6, 7, -8)).finished()

    assert alone(main).results[0] == sum(n * n for n in range(1, 9))


def test_a_context_is_used_again_when_its_process_has_ended(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> list[int]:
        results = []
        for signal in (1, 2):
            process = host.channels.start(program, "sum", microengine=0, args=(0x8000_0000, signal))
            results.append(await process.finished())
        await host.channels.start(program, "waker", microengine=1, args=(1, 0, 0)).finished()
        runs = await host.channels.start(program, "waker", microengine=0, args=(1, 0, 0)).finished()
        return [*results, runs]

    assert alone(main).results[0] == [0, 0, 2], "a global variable is one for each microengine, and stays"


def test_a_trap_is_told_with_its_line(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        process = host.channels.start(program, "stray", microengine=4, context=1, args=(0x7000_0000,))
        with pytest.raises(nicety.HandlerTrap, match=f"process stray on microengine 4, context 1: .*:{STRAY_LINE}"):
            await process.finished()

    with pytest.raises(nicety.HandlerFailure, match="process stray"):
        alone(main)
    run = alone(main, allow_failures="trap")
    [fault] = [failure.text for failure in run.nodes[0].failures]
    assert "process stray on microengine 4, context 1" in fault
    assert f"processes.c:{STRAY_LINE}" in fault
    trapped = run.nodes[0].channels.microengines[0].processes[0].trapped
    assert trapped is not None
    assert f"processes.c:{STRAY_LINE}" in trapped


def test_a_trap_explains_why_a_program_waits(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        host.channels.start(program, "stray", microengine=0, args=(4,))
        await host.channels.start(program, "sleeper", microengine=1, args=(2,)).finished()

    with pytest.raises(nicety.HandlerTrap, match=r"(?s)process stray .*so that there was a deadlock.*signals 2"):
        alone(main)


def test_waiting_for_a_process_that_never_ends_is_a_deadlock(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        await host.channels.start(program, "sleeper", microengine=1, context=3, args=(2,)).finished()

    with pytest.raises(nicety.Deadlock, match=r"microengine 1, context 3, which waits for all of its signals 2"):
        alone(main)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"name": "summ"}, "did you mean sum|sum"),
        ({"microengine": 60}, r"no microengine 60; the card has microengines 0 to 59 \(hpu.cores\)"),
        ({"context": 8}, r"no context 8; the card has contexts 0 to 7 \(hpu.contexts\)"),
        (
            {"microengine": 2, "context": 2, "contexts": 2},
            "set up for 2 contexts, and there is no context 2 .* contexts = 3",
        ),
        ({"contexts": 0}, "context"),
        ({"contexts": 9}, "context"),
        ({"args": range(9)}, "8 arguments at most, not 9"),
        ({"args": (2**32,)}, "an argument of a process is a whole number"),
        ({"args": ("x",)}, "an argument of a process is a whole number"),
        ({"context": 1, "name": "sum"}, "context 1 of microengine 0 runs sleeper; there are 8 contexts on 60"),
        (
            {"context": 0, "contexts": 4},
            "cannot change its number of contexts while sleeper runs on its context 1",
        ),
    ],
)
def test_impossible_starts_are_refused(program: nicety.Processes, start: dict[str, Any], message: str) -> None:
    async def main(host: nicety.Host) -> None:
        host.channels.start(program, "sleeper", microengine=0, context=1, args=(0,))
        given = {"name": "sum", "microengine": start.get("microengine", 0 if "context" in start else 1), **start}
        host.channels.start(program, given.pop("name"), **given)

    with pytest.raises(nicety.InputError, match=message):
        alone(main)


def test_another_program_takes_an_idle_microengine(program: nicety.Processes, tmp_path: Path) -> None:
    other = tmp_path / "other.c"
    other.write_text("#include <nfp.h>\n__process uint32_t seven(void) { return 7; }\n")
    seven = nicety.Processes(other)

    async def main(host: nicety.Host) -> int:
        sleeping = host.channels.start(program, "sleeper", microengine=0, args=(0,))
        with pytest.raises(nicety.InputError, match="cannot load another program while sleeper runs"):
            host.channels.start(seven, "seven", microengine=0, context=1)
        await host.channels.start(program, "waker", microengine=1, args=(0, 0, 0)).finished()
        await sleeping.finished()
        result = await host.channels.start(seven, "seven", microengine=0, context=1).finished()
        with pytest.raises(nicety.RunError, match="another process was started"):
            await sleeping.finished()
        return result

    assert alone(main).results[0] == 7


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        ({"memory": "dram"}, "'dram' is no memory of the card; there are cls, ctm, imem, emem"),
        (
            {"memory": "cls", "length_bytes": 65537},
            r"reach past the end of CLS, which has 65536 bytes \(memory.cls.size\)",
        ),
        ({"memory": "cls", "island": 5}, "no island 5; the card has islands 0 to 4"),
        ({"memory": "imem", "island": 1}, "IMEM is shared by all islands"),
        ({"memory": "emem", "offset": 2**31, "length_bytes": 1}, "EMEM"),
        ({"memory": 7}, "memory is a text"),
    ],
)
def test_memory_that_is_none(memory: dict[str, Any], message: str) -> None:
    async def main(host: nicety.Host) -> None:
        host.channels.card_memory(**{"length_bytes": 4, **memory})

    with pytest.raises(nicety.InputError, match=message):
        alone(main)


def test_more_bytes_than_a_part_of_memory_has() -> None:
    async def main(host: nicety.Host) -> None:
        host.channels.card_memory("ctm", length_bytes=4, island=4).write(bytes(5))

    with pytest.raises(nicety.InputError, match="5 bytes for a part of a memory of 4 bytes"):
        alone(main)


async def _counter(host: nicety.Host) -> None:
    host.portals.ct_alloc()


async def _put(host: nicety.Host) -> None:
    await host.portals.put(1, 8, to=0, pt=1)


async def _ct_get(host: nicety.Host) -> None:
    host.portals.ct_get(1)


@pytest.mark.parametrize("main", [_counter, _put, _ct_get])
def test_a_card_with_processes_has_no_portals(main: Any) -> None:
    with pytest.raises(nicety.InputError, match="design nfp has no Portals interface, but processes and channels"):
        alone(main)


def test_a_portals_card_has_no_processes(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        with pytest.raises(nicety.InputError, match="design portals has no processes and channels"):
            host.channels.card_memory("cls", length_bytes=4)
        host.channels.start(program, "sum", microengine=0)

    with pytest.raises(nicety.Error):
        nicety.Cluster(1, "spin-discrete").run(main)


def test_one_host_is_alone() -> None:
    async def main(host: nicety.Host) -> int:
        await host.barrier()
        await host.compute(ns=1)
        return host.ranks

    for card in ("nfp-4000", "spin-discrete"):
        for topology in (None, "alone"):
            assert nicety.Cluster(1, card, topology=topology).run(main).results == {0: 1}
    with pytest.raises(nicety.InputError, match="topology alone has 1 node, not 2; write nodes = 1"):
        nicety.Cluster(2, "nfp-4000", topology="alone")
    with pytest.raises(nicety.InputError, match="a pair has 2 nodes, not 1; write nodes = 2, or topology alone"):
        nicety.Cluster(1, "nfp-4000", topology="pair")


def test_runs_do_not_depend_on_shards(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> int:
        process = host.channels.start(program, "sum", microengine=host.rank, args=(0x8000_0000, 5 + host.rank))
        await host.barrier()
        return await process.finished()

    def run(shards: int) -> nicety.Run:
        return nicety.Cluster(3, "nfp-4000", topology="star", shards=shards).run(main)

    assert run(1).nodes == run(3).nodes
    assert run(1).time_ps == run(2).time_ps


def test_messages_between_ranks_keep_their_microengines(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> int:
        # Until the first message they are free for any process.
        assert await host.channels.start(program, "sum", microengine=59, args=(0x8000_0000, 1)).finished() == 0
        buffer = host.alloc(8)
        if host.rank == 0:
            await host.send(buffer, to=1)
            with pytest.raises(nicety.InputError, match="microengines 56 to 59 forward messages between ranks already"):
                host.channels.start(program, "sum", microengine=59, args=(0, 0))
        else:
            await host.recv(buffer)
        return await host.channels.start(program, "sum", microengine=55, args=(0x8000_0000, 1)).finished()

    assert nicety.Cluster(2, "nfp-4000").run(main).results == {0: 0, 1: 0}


def test_messages_need_microengines_without_processes(program: nicety.Processes) -> None:
    async def main(host: nicety.Host) -> None:
        host.channels.start(program, "sleeper", microengine=57, args=(1,))
        buffer = host.alloc(8)
        with pytest.raises(nicety.InputError, match="need microengines 56 to 59, but a process runs on microengine 57"):
            await host.send(buffer, to=1 - host.rank)
        with pytest.raises(nicety.InputError, match="need microengines 56 to 59, but a process runs on microengine 57"):
            await host.recv(buffer)

    nicety.Cluster(2, "nfp-4000").run(main)


FRAMES = """\
#include <nfp.h>

/* Takes frames of a queue, for ever, and counts them. */
__process void take(uint32_t queue, uint32_t counter) {
    uint32_t head[2], source;
    for (;;) {
        nfp_eth_receive_from(queue, head, sizeof head, &source);
        nfp_fetch_add((volatile uint32_t *)(counter + 4 * queue), 1);
    }
}

/* Sends a frame to each of so many queues, and what a program may send by accident. */
__process int32_t scatter(uint32_t queues) {
    uint32_t words[15] = {1};
    for (uint32_t queue = 0; queue < queues; queue++) nfp_eth_send_to(1, queue, words, 8, 0, 0);
    nfp_eth_send_to(1, NFP_ETH_MESSAGES, words, sizeof words, 0, 0);
    return nfp_eth_send(1, words, sizeof words, 0, 0);
}
"""


@pytest.mark.parametrize("messages", [False, True])
def test_frames_belong_to_the_process_that_receives_from_their_queue(tmp_path: Path, messages: bool) -> None:
    source = tmp_path / "frames.c"
    source.write_text(FRAMES)
    program = nicety.Processes(source)

    async def main(host: nicety.Host) -> Any:
        buffer = host.alloc(2000)
        counters = host.channels.card_memory("emem", length_bytes=40)
        if host.rank == 1:
            for microengine, queue in enumerate((0, 0, 0, 2)):
                host.channels.start(program, "take", microengine=microengine, args=(queue, counters.address))
            host.channels.open_queue(4)
            with pytest.raises(nicety.InputError, match="queues 0 to 254, and one for messages between hosts"):
                host.channels.open_queue(255)
            if messages:
                await host.recv(buffer)
        else:
            await host.channels.start(program, "scatter", microengine=3, args=(6,)).finished()
            if messages:
                await host.send(buffer, to=1)
        await host.barrier()
        return [int.from_bytes(counters.read()[4 * queue :][:4], "little") for queue in range(6)]

    run = nicety.Cluster(2, "nfp-4000").run(main)
    assert run.results[1] == [2, 0, 1, 0, 0, 0]
    port = run.nodes[1].channels.port
    seen = {q.queue: (q.frames_received, q.frames_unclaimed, q.frames_waiting) for q in port.queues}
    assert seen.pop(255)[1:] == (0, 0)
    assert seen == {0: (2, 0, 0), 1: (0, 1, 0), 2: (1, 0, 0), 3: (0, 1, 0), 4: (0, 0, 1), 5: (0, 1, 0)}
    assert (port.frames_unclaimed, port.frames_waiting, port.frames_damaged) == (3, 1, 0)
    # The program's only frame that is no message between hosts.
    assert (port.frames_refused, port.envelopes_refused) == (1, 0)
    assert run.nodes[0].channels.port.frames_sent >= 8


DEEP = """\
#include <nfp.h>

static volatile uint32_t shared[4] = {1, 2, 3, 4};  /* lies below the stack of context 0 */

static uint32_t down(uint32_t levels) {
    volatile uint32_t frame[8];
    frame[0] = levels;
    return levels == 0 ? 0 : down(levels - 1) + frame[0];
}

__process uint32_t deep(uint32_t levels) { return down(levels); }

__process uint32_t wide(uint32_t used) {
    volatile uint8_t frame[1024];
    for (uint32_t i = 0; i < used; i++) frame[i] = (uint8_t)i;
    return used;
}

__process uint32_t far(uint32_t offset) {
    volatile uint32_t frame[4] = {0};
    frame[offset] = 5;
    return frame[0];
}

__process uint32_t look(void) { return shared[0] + shared[1] + shared[2] + shared[3]; }
"""


@pytest.mark.parametrize("context", [0, 1, 7])
@pytest.mark.parametrize(
    ("name", "argument", "line"),
    [
        ("deep", 100, "static uint32_t down(uint32_t levels) {"),
        ("wide", 1, "__process uint32_t wide(uint32_t used) {"),
        ("far", 1000, "    frame[offset] = 5;"),
    ],
)
def test_a_stack_ends_where_the_next_one_begins(
    tmp_path: Path, context: int, name: str, argument: int, line: str
) -> None:
    source = tmp_path / "deep.c"
    source.write_text(DEEP)
    program = nicety.Processes(source)
    first = 1 + DEEP.splitlines().index(line)

    async def main(host: nicety.Host) -> Any:
        broken = host.channels.start(program, name, microengine=0, context=context, args=(argument,))
        with pytest.raises(nicety.HandlerTrap) as trap:
            await broken.finished()
        # The data below the stacks are unchanged.
        return str(trap.value), await host.channels.start(program, "look", microengine=0, context=3).finished()

    text, shared = alone(main, allow_failures="trap").results[0]
    assert shared == 10
    lines = [f"deep.c:{number}" for number in range(first, first + 4)]
    assert any(where in text for where in lines), text
    assert name == "far" or "stack overflow: the stack pointer moves to" in text, text

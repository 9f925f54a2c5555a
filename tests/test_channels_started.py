"""Calls on channels that begin and go on by themselves: times by hand, results, errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import nicety

KEEP = """
#include <nfp.h>
__process int32_t take(uint32_t target, uint32_t bytes) {
    char text[CHANNEL_DIRECT];
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK) result = channel_read(target, text, bytes);
    return result;
}
__process int32_t give(uint32_t target, uint32_t cycles) {
    channel_register(target);
    for (uint32_t begun = nfp_cycle(); nfp_cycle() - begun < cycles;) nfp_yield();
    return channel_write(target, &target, sizeof target);
}
__process int32_t keep(uint32_t target, uint32_t size) {
    int32_t result = channel_register(target);
    if (result == CHANNEL_OK) result = channel_read_ind(target, nfp_emem(0), size);
    if (result == CHANNEL_OK) result = channel_write_ind(target, nfp_emem(0), size);
    return result;
}
"""
# Library, system call, and the driver's post.
_CALL, _POST = 50 + 60, 5400
_WAKE = 3800
# A direct message, from the call to its return.
_SENT = 14660.328


@pytest.fixture
def run(tmp_path: Path) -> Callable:
    source = tmp_path / "keep.c"
    source.write_text(KEEP)

    def run(main: Callable, process: str, *args: int, targets: int = 1) -> object:
        async def started(host: nicety.Host) -> object:
            device, channels = host.channels.open(), []
            for target in range(targets):
                program = nicety.Processes(str(source))
                host.channels.start(program, process, microengine=target, args=(target, *args))
                channels.append(await device.subscribe(target))
            # All processes are at their ends.
            await host.compute(ns=10_000)
            return await main(host, *channels)

        return nicety.Cluster(1, "nfp-4000").run(started).results[0]

    return run


def test_a_message_passes_while_the_program_computes(run: Callable) -> None:
    async def main(host: nicety.Host, channel: nicety.Channel) -> list[float]:
        begun = host.now_ns
        pending = await channel.start_send(bytes(56))
        posted = host.now_ns - begun
        await host.compute(ns=20_000)
        assert await pending == b""
        return [posted, host.now_ns - begun]

    # The message has passed before the program asks, and asking does not sleep.
    assert run(main, "take", 56) == [_CALL + _POST, _CALL + _POST + 20_000 + _CALL]


def test_a_program_that_waits_at_once_is_woken_behind_the_kernels_thread(run: Callable) -> None:
    async def main(host: nicety.Host, channel: nicety.Channel) -> list[float]:
        begun = host.now_ns
        await channel.send(bytes(56))
        sent, begun = host.now_ns - begun, host.now_ns
        await (await channel.start_send(bytes(56)))
        return [sent, host.now_ns - begun]

    sent, started = run(main, "take", 56)
    assert sent == pytest.approx(_SENT, abs=0.01)
    assert started == pytest.approx(_SENT + _WAKE, abs=0.01)


def test_messages_of_several_channels_are_under_way_at_once(run: Callable) -> None:
    async def main(host: nicety.Host, *channels: nicety.Channel) -> float:
        begun = host.now_ns
        pending = [await channel.start_send(bytes(8)) for channel in channels]
        for each in pending:
            await each
        return host.now_ns - begun

    # Four posts, one after another. The last message's way, its worker, and the program's wake-up.
    took = run(main, "take", 8, targets=4)
    assert 4 * (_CALL + _POST) + _WAKE < took < 3 * (_CALL + _POST) + _SENT + 4 * (_WAKE + _CALL)
    assert took < 3 * _SENT


def test_a_receive_begins_before_its_process_writes(run: Callable) -> None:
    async def main(host: nicety.Host, channel: nicety.Channel) -> list:
        begun = host.now_ns
        pending = await channel.start_receive(4)
        waits = host.now_ns - begun
        await host.compute(ns=200_000)
        computed = host.now_ns
        return [waits, await pending, host.now_ns - computed]

    # 60 000 cycles at 600 MHz are 100 us.
    assert run(main, "give", 60_000) == [_CALL, bytes(4), _CALL]


def test_bulk_messages_pass_by_themselves(run: Callable) -> None:
    async def main(host: nicety.Host, channel: nicety.Channel) -> list:
        there, back = host.alloc(100_000), host.alloc(100_000)
        there.array[:] = [i % 251 for i in range(100_000)]
        sent = await channel.start_send_ind(there)
        received = await channel.start_receive_ind(back)
        await host.compute(ns=1_000_000)
        computed = host.now_ns
        return [await sent, await received, bytes(back.array) == bytes(there.array), host.now_ns - computed]

    assert run(main, "keep", 100_000) == [b"", b"", True, 2 * _CALL]


def test_a_call_that_cannot_begin_fails_at_once_and_others_where_they_are_awaited(run: Callable) -> None:
    async def main(host: nicety.Host, channel: nicety.Channel) -> None:
        pending = await channel.start_receive(4, timeout_ns=5_000)
        with pytest.raises(nicety.RunError, match="already receiving on this channel"):
            await channel.start_receive(4)
        await host.compute(ns=20_000)
        with pytest.raises(nicety.TimedOut, match="wait for target 0"):
            await pending
        with pytest.raises(nicety.InputError, match="was awaited before"):
            await pending
        with pytest.raises(nicety.InputError, match="56"):
            await channel.start_send(bytes(57))

    run(main, "give", 600_000)


def test_a_call_that_is_not_awaited_completes(run: Callable) -> None:
    async def main(host: nicety.Host, channel: nicety.Channel) -> float:
        await channel.start_send(bytes(56))
        await host.compute(ns=20_000)
        begun = host.now_ns
        await channel.send(bytes(56))
        return host.now_ns - begun

    assert run(main, "take", 56) == pytest.approx(_SENT, abs=0.01)

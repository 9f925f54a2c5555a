"""Data caches of handler cores in a line-rate check: hits, misses, the verdict that names them, stale accesses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import nicety as package
from nicety._generated.types import LineRateReport
from nicety.bench.line_rate import line_rate_text
from nicety.build.compiler import library_source

WALK = """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    volatile uint32_t *words = state;
    for (int i = 0; i < LINES; i++) {
        (void)words[16 * i]; /* first */
        (void)words[16 * i + 1];
    }
    return SUCCESS;
}
"""
COUNT = """#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    volatile uint32_t *words = state;
    words[0]++; /* plain */
    __atomic_fetch_add(&words[32], 1, __ATOMIC_RELAXED);
    return SUCCESS;
}
"""
LEVEL = ["memory.state=l2", "memory.l2.load=40", "memory.l2.banks=16", "memory.l2.cached=true"]
CACHE = ["memory.cache.size=1 KiB", "memory.cache.ways=4", "memory.cache.load=2"]
PRICES = ["memory.cache.invalidate=30", "memory.cache.transfer=50"]


def check(folder: Path, text: str, *overrides: str, lines: int = 8, nic: str = "spin-discrete") -> LineRateReport:
    source = folder / "walk.c"
    source.write_text(text)
    return package.check_line_rate(
        package.Handlers(source, defines=[f"LINES={lines}"]),
        nics=[nic],
        packet_sizes=[64],
        messages=8,
        state_bytes=4096,
        overrides=[*LEVEL, *CACHE, *overrides],
    )


def words(report: LineRateReport) -> str:
    return " ".join(line.removeprefix("# ") for line in line_rate_text(report).splitlines())


def line_of(text: str, mark: str) -> int:
    return 1 + next(at for at, line in enumerate(text.splitlines()) if mark in line)


def test_lines_that_fit_are_fetched_once(tmp_path: Path) -> None:
    report = check(tmp_path, WALK, "hpu.cores=2", *PRICES)
    (row,) = report["rows"]
    (cache,) = row["memory"]["caches"]
    packets = 8 * 64 + 1024
    # Each of two caches fetches 8 lines, and 16 words of them are loaded per packet.
    assert cache["misses"] * packets == pytest.approx(2 * 8)
    assert (cache["level"], cache["accesses"], cache["bypasses"]) == ("l2", 16, 0)
    assert cache["hits"] + cache["misses"] == pytest.approx(16)
    assert cache["miss_rate"] == pytest.approx(cache["misses"] / 16)
    assert (
        cache["writebacks"]
        == cache["cache_to_cache_transfers"]
        == cache["invalidations"]
        == cache["stale_accesses"]
        == 0
    )
    assert row["memory"]["shared_accesses"] == row["memory"]["accesses"] == 16
    assert "of 16.0 accesses of a packet to l2, 16.0 hit the data caches, 0.0 miss (0.1%)" in words(report)


def test_cache_misses_are_what_limits(tmp_path: Path) -> None:
    # 32 lines of 64 bytes are twice the capacity: each line is evicted before its next use.
    report = check(tmp_path, WALK, "hpu.cores=64", *PRICES, lines=32)
    (row,) = report["rows"]
    (cache,) = row["memory"]["caches"]
    assert (cache["hits"], cache["misses"]) == (32, 32)
    # A line takes 40 cycles if no bank delays it.
    assert cache["wait_cycles"] >= 32 * 40
    assert cache["wait_cycles"] == pytest.approx(32 * 40 + row["memory"]["levels"][0]["wait_cycles"])
    (first,) = cache["lines"]
    assert first["line"] == f"walk.c:{line_of(WALK, 'first')}"
    assert cache["load"] == pytest.approx(cache["wait_cycles"] * 0.4 / (64 * 6.7))
    assert {"part": "cache misses", "name": "l2"}.items() <= row["parts"][1].items() | row["parts"][2].items()
    slow = check(tmp_path, WALK, "hpu.cores=64", "memory.l2.contended=false", *PRICES, lines=32)
    (row,) = slow["rows"]
    assert (row["verdict"], row["limited_by"], row["bottleneck"]) == ("no", "cache misses", "cache misses")
    assert row["memory"]["levels"] == []
    assert "no: bottleneck: cache misses of l2 (cores wait for them " in words(slow)
    # They are part of the processors' load, not another part with headroom.
    (headroom,) = words(slow).split("Headroom: ")[1:]
    assert "cache misses" not in headroom.split("Idle:")[0]
    assert "wait 1280.0 cycles for lines of data caches; with hits only, the cores would keep up" in words(slow)
    # They do with a cache that has room.
    (large,) = check(tmp_path, WALK, "hpu.cores=64", "memory.cache.size=2 KiB", *PRICES, lines=32)["rows"]
    assert large["sustains_line_rate"]


def test_ownership_costs_what_others_do(tmp_path: Path) -> None:
    (row,) = check(tmp_path, COUNT, "hpu.cores=4", *PRICES)["rows"]
    (cache,) = row["memory"]["caches"]
    # A load and a store of one word, and an atomic operation; the line is handed over from core to core.
    assert cache["hits"] + cache["misses"] + cache["bypasses"] == pytest.approx(cache["accesses"])
    assert (cache["accesses"], cache["bypasses"]) == (3, 1)
    assert 0.5 < cache["cache_to_cache_transfers"] <= 2
    assert cache["stale_accesses"] == 0


def test_stale_accesses_are_named_with_their_lines(tmp_path: Path) -> None:
    report = check(tmp_path, COUNT, "hpu.cores=4", "memory.cache.coherence=none")
    (cache,) = report["rows"][0]["memory"]["caches"]
    assert cache["stale_accesses"] > 100
    # Atomic additions are in memory alone.
    (line,) = cache["stale_lines"]
    assert line == {"line": f"walk.c:{line_of(COUNT, 'plain')}", "accesses": cache["stale_accesses"]}
    assert "The caches are not coherent" in words(report)
    assert f"{cache['stale_accesses']} at walk.c:{line_of(COUNT, 'plain')}" in words(report)
    (alone,) = check(tmp_path, COUNT, "hpu.cores=1", "memory.cache.coherence=none")["rows"]
    assert alone["memory"]["caches"][0]["stale_accesses"] == 0


def test_sensitivity_moves_what_is_assumed_of_caches(tmp_path: Path) -> None:
    def section(name: str, **keys: str) -> str:
        assumed = 'kind = "assumed", source = "a test"'
        return f"[{name}]\n" + "".join(f"{key} = {{ value = {value}, {assumed} }}\n" for key, value in keys.items())

    spec = tmp_path / "cached.toml"
    spec.write_text(
        'extends = "spin-discrete"\nname = "cached"\n'
        + section("memory", state='"l2"')
        + section("memory.l2", load="40", cached="true", contended="false")
        + section("memory.cache", size='"1 KiB"', ways="4", load="2", invalidate="30", transfer="50")
    )
    source = tmp_path / "walk.c"
    source.write_text(WALK)
    report = package.check_line_rate(
        package.Handlers(source, defines=["LINES=32"]),
        nics=[str(spec)],
        packet_sizes=[64],
        messages=2,
        state_bytes=4096,
        overrides=["hpu.cores=64"],
        sensitivity=True,
    )
    (row,) = report["rows"]
    values = {value["key"]: value for value in row["sensitivity"]["values"]}
    size = values["memory.cache.size"]["doubled"]
    assert size is not None
    assert (row["verdict"], size["value"], size["verdict"]) == ("no", "2 KiB", "yes")
    assert values["memory.l2.load"]["halved"] is not None


def test_caches_that_cannot_be_are_refused(nicety: Callable, tmp_path: Path) -> None:
    with pytest.raises(package.InputError, match="1024 bytes do not divide into sets of 3 lines of 64 bytes"):
        check(tmp_path, WALK, "memory.cache.ways=3", *PRICES)
    result = nicety("bench", "handlers", "walk.c", "--nic", "spin-discrete", "--set", "memory.cache.size=1 KiB")
    assert result.status == 2
    assert "memory.cache" in result.stderr


FRAME = """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    volatile uint8_t *data = frame->data;
    (void)data[0]; /* first */
    (void)data[1];
    (void)*(volatile uint32_t *)state;
    return FRAME_DROP;
}
"""


def test_a_frame_is_in_no_cache_when_its_handler_starts(tmp_path: Path) -> None:
    source = tmp_path / "frame.c"
    source.write_text(FRAME)
    report = package.check_line_rate(
        package.Handlers(source),
        nics=["spin-100g"],
        packet_sizes=[60],
        messages=400,
        overrides=["hpu.cores=2", "memory.l1.cached=true", "memory.l1.load=10", *CACHE, *PRICES],
    )
    (row,) = report["rows"]
    (cache,) = row["memory"]["caches"]
    # A frame is at a place of the buffer that had another one before. The line of the state is fetched once per core.
    assert cache["accesses"] == 3
    assert cache["misses"] == pytest.approx(1, abs=0.01)
    assert cache["hits"] == pytest.approx(2, abs=0.01)
    line, *others = cache["lines"]
    assert line["line"] == f"frame.c:{line_of(FRAME, 'first')}"
    assert all(other["wait_cycles"] < 1 for other in others)


def test_frames_written_behind_caches_are_sent() -> None:
    async def main(host: package.Host) -> object:
        socket = host.socket.datagram()
        if host.rank == 0:
            await host.barrier()
            answers = []
            for number in range(20):
                await socket.sendto(b"a line" + bytes([number]), 1, 7)
                answers.append((await socket.recvfrom(100))[0])
            return answers
        host.frames.install("udp dport=7", package.Handlers(library_source("frames/echo.c")))
        await host.barrier()
        return None

    overrides = ["memory.l1.cached=true", "memory.l1.load=10", *CACHE]
    for how in (PRICES, ["memory.cache.coherence=none"], [*PRICES[:1], "memory.cache.writes=through"]):
        changes = dict(change.split("=") for change in [*overrides, *how])
        run = package.Cluster(2, "spin-100g", set=changes).run(main)
        assert run.results[0] == [b"a line" + bytes([number]) for number in range(20)]

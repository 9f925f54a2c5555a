"""The sustainable rate of traffic is found by runs, and is the same at any offered rate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety._generated.types import LineRateOptions, LineRateReport, LineRateRow
from nicety.bench.line_rate import line_rate_text
from nicety.bench.places.pictures import line_rate_figure
from nicety.cli.progress import Bar

TICKET = """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    uint32_t *words = state;
    const uint32_t own = __atomic_fetch_add(&words[0], 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&words[1], __ATOMIC_ACQUIRE) != own) ;
    volatile uint32_t *counts = &words[4];
    for (int i = 0; i < 6; i++) counts[i]++;
    __atomic_store_n(&words[1], own + 1, __ATOMIC_RELEASE);
    return FRAME_DROP;
}
"""
EXCHANGE = """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    uint32_t *words = state;
    while (__atomic_exchange_n(&words[0], 1, __ATOMIC_ACQUIRE)) ;
    volatile uint32_t *counts = &words[4];
    for (int i = 0; i < 6; i++) counts[i]++;
    __atomic_store_n(&words[0], 0, __ATOMIC_RELEASE);
    return FRAME_DROP;
}
"""
SHARED = """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    uint32_t *words = state;
    const uint32_t own = frame_load32(frame->data + 26) * 2654435761u >> 28;
    for (int i = 0; i < 8; i++) words[8 * own + i] += frame->length;
    return FRAME_DROP;
}
"""
GROWS = """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    const uint32_t number = __atomic_fetch_add((uint32_t *)state, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < number / 32; i++) __asm__ volatile("nop");
    return FRAME_DROP;
}
"""
WORK = """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    for (int i = 0; i < 100; i++) __asm__ volatile("nop");
    return FRAME_DROP;
}
"""
CACHES = [
    "memory.cache.size=4KiB",
    "memory.cache.load=1",
    "memory.cache.store=1",
    "memory.cache.invalidate=10",
    "memory.cache.transfer=20",
    "memory.l1.cached=true",
]


def check(
    folder: Path,
    source: str,
    traffic: str,
    sets: list[str] | None = None,
    news: Callable[[str], None] | None = None,
    **more: Any,
) -> LineRateReport:
    file = folder / "mine.c"
    file.write_text(source)
    expression = f"udp src=10.0.0.0/8 flows=1k size=60 {traffic}"
    options: LineRateOptions = {"nics": "spin-100g", "traffic": expression, "overrides": sets or [], **more}
    return nicety.check_line_rate(file, news=news, **options)


def sustained(row: LineRateRow) -> float:
    """In packets per second."""
    return row["capacity_fraction"] * row["line_rate_packets_per_s"]


def bounded(row: LineRateRow) -> None:
    """Runs on either side of the sustainable rate are in the list, and close."""
    most, least, capacity = row["sustained_fraction"], row["not_sustained_fraction"], row["capacity_fraction"]
    assert most is not None
    assert least is not None
    assert most <= capacity <= least
    assert least / most < 1.07
    for run in row["trials"]:
        assert run["sustained"] or run["rate_fraction"] >= least
        assert not run["sustained"] or run["rate_fraction"] <= most
        assert run["sustained"] == (
            run["verdict"] != "no" and (run["capacity_fraction"] or 9e9) >= run["rate_fraction"]
        )


@pytest.mark.parametrize(
    ("source", "part", "sets"),
    [(TICKET, "lock", []), (SHARED, "cache misses", CACHES), (WORK, "handler cores", [])],
    ids=["lock", "caches", "processors"],
)
def test_a_card_sustains_the_same_whichever_rate_is_asked(
    tmp_path: Path, source: str, part: str, sets: list[str]
) -> None:
    (full,) = check(tmp_path, source, "packets=10k", sets)["rows"]
    assert (full["verdict"], full["bottleneck"]) == ("no", part)
    bounded(full)
    for rate in ("1Mpps", "6Mpps arrivals=poisson", "15Mpps arrivals=burst:4"):
        (row,) = check(tmp_path, source, f"rate={rate} packets=10k", sets)["rows"]
        assert (row["verdict"], row["bottleneck"], row["limited_by"]) == ("yes", part, None)
        assert sustained(row) == pytest.approx(sustained(full), rel=0.03)
        bounded(row)
        # The wire takes 84 bytes at 100 Gb/s.
        for run in row["trials"]:
            assert run["above_wire_rate"] == (run["rate_fraction"] * row["line_rate_packets_per_s"] > 148.81e6)
        assert any(run["burst_packets"] == 512 and run["sustained"] for run in row["trials"])


def test_the_overload_policy_does_not_change_the_sustainable_rate(tmp_path: Path) -> None:
    found = []
    for how in ({}, {"lossy": True}, {"pfc": True}):
        (row,) = check(tmp_path, TICKET, "rate=13Mpps arrivals=poisson packets=10k", **how)["rows"]
        assert row["traffic"]["dropped_by_overload"] == 0
        found.append(row["capacity_fraction"])
    assert found == pytest.approx([found[0]] * 3, rel=0.03)


def test_a_run_that_is_stopped_bounds_what_is_sustained(tmp_path: Path) -> None:
    report = check(tmp_path, EXCHANGE, "rate=15Mpps arrivals=poisson packets=20k")
    (row,) = report["rows"]
    stopped = [run for run in row["trials"] if run["stopped"] is not None]
    assert stopped
    least = min(run["rate_fraction"] for run in stopped)
    assert 1 < row["capacity_fraction"] < least
    assert not any(run["sustained"] for run in stopped)
    words = " ".join(line_rate_text(report).replace("\n#", "").split())
    assert f"At {least:.2f} x a run was stopped: rule 'any': frame handler stopped: still running at its limit" in words
    shown = [text.get_text() for text in line_rate_figure(report).axes[1].get_yticklabels()]
    assert "offered rate / sustainable rate" in shown
    # Without its time, and once.
    assert words.count("a run was stopped") == 1
    assert " ms node " not in words


BOTH = """#include <frame.h>
static void take(uint32_t *word) {
    while (__atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(word, __ATOMIC_RELAXED)) ;
}
__handler int frame_handler(const frame_t *frame, void *state) {
    uint32_t *words = state;
    const int first = frame->data[33] & 1;
    take(&words[16 * first]);
    take(&words[16 * !first]);
    words[32]++;
    __atomic_store_n(&words[16 * !first], 0, __ATOMIC_RELEASE);
    __atomic_store_n(&words[16 * first], 0, __ATOMIC_RELEASE);
    return FRAME_DROP;
}
"""
SEMAPHORE = """#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    int32_t *inside = state;
    while (__atomic_fetch_add(inside, 1, __ATOMIC_ACQUIRE) >= 4)
        __atomic_fetch_add(inside, -1, __ATOMIC_RELAXED);
    for (int i = 0; i < 20; i++) __asm__ volatile("nop");
    __atomic_fetch_add(inside, -1, __ATOMIC_RELEASE);
    return FRAME_DROP;
}
"""


def test_handlers_that_a_burst_stops_barely_keep_up(tmp_path: Path) -> None:
    """At their arrival rate few handlers run concurrently, and never wait for each other."""
    file = tmp_path / "mine.c"
    file.write_text(SEMAPHORE)
    traffic = "udp src=10.0.0.0/8 flows=1M size=60 rate=5Mpps packets=20k"
    for more in ({}, {"lossy": True}):
        report = nicety.check_line_rate(file, nics="spin-100g", traffic=traffic, **more)
        (row,) = report["rows"]
        burst = row["burst"]
        assert burst is not None
        assert (burst["packets"], burst["burst_packets"], burst["departure_fraction"]) == (20_000, 512, None)
        assert "still running at its limit" in (burst["stopped"] or "")
        assert (row["verdict"], row["capacity_fraction"]) == ("barely", 1.0)
        words = " ".join(line_rate_text(report).replace("\n#", "").split())
        assert "After a burst of 512 packets at the line rate, a run was stopped: rule 'any'" in words
        assert "(runs: " not in words
    # At most the number that it holds, and a quarter of all.
    (row,) = nicety.check_line_rate(file, nics="spin-100g", traffic=traffic.replace("20k", "1k"))["rows"]
    assert row["burst"] is not None
    assert row["burst"]["burst_packets"] == 250
    (row,) = nicety.check_line_rate(file, nics="spin-100g", traffic=traffic.replace("20k", "100"))["rows"]
    assert row["burst"] is None


def test_two_locks_in_either_order_keep_up_until_a_burst(tmp_path: Path) -> None:
    report = check(tmp_path, BOTH, "dst=10.1.0.0/24 rate=2Mpps packets=5k")
    (row,) = report["rows"]
    burst = row["burst"]
    assert burst is not None
    assert "it waits for byte" in (burst["stopped"] or "")
    # Nothing more is tried then.
    assert (row["verdict"], row["limited_by"], row["trials"]) == ("barely", None, [])


def test_a_card_that_does_not_recover_from_a_burst_barely_keeps_up(tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text("""#include <handler.h>
    volatile int32_t word;
    __handler__ void packet(handler_args_t *args) {
        int32_t seen;
        do seen = word; while (compare_and_swap(&word, seen, seen + 1));
    }
    void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {
        *hh = NULL; *ph = packet; *th = NULL; *memory = NULL;
    }
    """)

    def check(rate: str) -> LineRateReport:
        return nicety.check_line_rate(file, nics="pspin", traffic=f"udp size=64 packets=20k {rate}")

    (full,) = check("")["rows"]
    # Between the rate with a backlog and the rate that keeps up from the start.
    report = check("rate=15Mpps")
    (row,) = report["rows"]
    burst = row["burst"]
    assert burst is not None
    assert (row["verdict"], row["bottleneck"], row["limited_by"]) == ("barely", "contended word", None)
    assert row["capacity_fraction"] == pytest.approx(burst["departure_fraction"], rel=0.02)
    assert row["capacity_fraction"] < 0.95
    assert sustained(row) == pytest.approx(sustained(full), rel=0.03)
    words = " ".join(line_rate_text(report).replace("\n#", "").split())
    assert "x not, after a burst of 4096 packets). The card kept up in this run. With a backlog its rate falls" in words


@pytest.mark.parametrize("arrivals", ["paced", "poisson", "burst:32"])
@pytest.mark.parametrize("packets", [200, 1000, 10_000])
def test_a_lock_recovers_from_a_burst(tmp_path: Path, arrivals: str, packets: int) -> None:
    traffic = f"rate=2Mpps arrivals={arrivals} packets={packets}"
    (row,) = check(tmp_path, TICKET, traffic)["rows"]
    burst = {"packets": packets, "burst_packets": min(512, packets // 4), "departure_fraction": 1.0, "stopped": None}
    assert (row["verdict"], row["burst"]) == ("yes", burst)
    (row,) = check(tmp_path, WORK, traffic)["rows"]
    assert (row["verdict"], row["burst"]) == ("yes", None)


def test_a_card_with_two_ports_recovers_from_a_burst_of_both(tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text(TICKET)
    udp = "udp src=10.0.0.0/8 flows=1k size=60 packets=4k"
    (row,) = nicety.check_line_rate(
        file, nics="spin-100g", traffic=[f"{udp} rate=1Mpps", f"{udp} rate=3Mpps"], overrides=["link.ports=2"]
    )["rows"]
    burst = row["burst"]
    assert burst is not None
    assert (row["verdict"], burst["burst_packets"], burst["departure_fraction"]) == ("yes", 512, 1.0)


def test_a_card_that_does_not_keep_up_is_tried_at_lower_rates(tmp_path: Path) -> None:
    for traffic in ("packets=4k", "rate=100Mpps packets=4k"):
        (row,) = check(tmp_path, TICKET, traffic)["rows"]
        assert row["verdict"] == "no"
        assert all(run["rate_fraction"] < 1 and not run["above_wire_rate"] for run in row["trials"])
        bounded(row)


def test_a_cards_own_wire_is_full_at_its_rate(tmp_path: Path) -> None:
    """Handlers send as much as arrives: beyond the wire's rate there is no search."""
    sends = WORK.replace("FRAME_DROP", "FRAME_WIRE").replace("i < 100", "i < 10")
    (row,) = check(tmp_path, sends, "packets=2k")["rows"]
    assert (row["verdict"], row["bottleneck"], row["trials"]) == ("barely", "link", [])
    (row,) = check(tmp_path, sends, "rate=50Mpps packets=4k")["rows"]
    assert (row["verdict"], row["bottleneck"], row["not_sustained_fraction"]) == ("yes", "link", None)
    assert sustained(row) == pytest.approx(148.81e6, rel=1e-3)


def test_a_card_that_keeps_up_with_the_wire_is_tried_on_a_faster_one(tmp_path: Path) -> None:
    slow = ["link.gap=1190ps/B"]
    (row,) = check(tmp_path, WORK, "rate=1Mpps packets=2k", slow)["rows"]
    assert row["trials"][0]["above_wire_rate"]
    bounded(row)
    assert sustained(row) == pytest.approx(16e9 / row["handler_ns"], rel=0.01)
    (full,) = check(tmp_path, TICKET, "packets=10k")["rows"]
    for rate in ("1Mpps", "wire"):
        report = check(tmp_path, TICKET, f"rate={rate} packets=5k", slow)
        (row,) = report["rows"]
        *_, last = row["trials"]
        assert (row["verdict"], row["bottleneck"], last["above_wire_rate"]) == ("yes", "lock", True)
        assert sustained(row) == pytest.approx(sustained(full), rel=0.03)
        assert "on a faster wire" in " ".join(line_rate_text(report).replace("\n#", "").split())


@pytest.mark.parametrize("nic", ["spin-100g", "spin-discrete"])
def test_equal_packets_are_tried_on_a_faster_wire_where_handlers_take_words(tmp_path: Path, nic: str) -> None:
    file = tmp_path / "mine.c"
    head, end = {
        "spin-100g": ("#include <frame.h>\n__handler int frame_handler(const frame_t *f, void *state)", "FRAME_DROP"),
        "spin-discrete": (
            "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *state)",
            "DROP",
        ),
    }[nic]
    file.write_text(f"""{head} {{
        uint32_t *count = state, seen = __atomic_load_n(count, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(count, &seen, seen + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) ;
        return {end};
    }}
    """)
    (row,) = nicety.check_line_rate(file, nics=nic, packet_sizes=[1000], messages=2000)["rows"]
    assert row["verdict"] == ("not judged" if nic == "spin-discrete" else "yes")
    assert all(run["above_wire_rate"] for run in row["trials"])
    bounded(row)
    assert row["capacity_fraction"] > 1.1


def test_first_packets_stand_for_long_traffic_unless_they_come_at_another_rate(tmp_path: Path) -> None:
    (row,) = check(tmp_path, WORK, "rate=20Mpps packets=120k")["rows"]
    assert {run["packets"] for run in row["trials"]} == {100_000}
    assert sustained(row) == pytest.approx(16e9 / row["handler_ns"], rel=0.01)


def test_a_handler_that_takes_longer_and_longer_is_judged_by_its_end(tmp_path: Path) -> None:
    loads = []
    for rate in (5, 12):
        report = check(tmp_path, GROWS, f"rate={rate}Mpps arrivals=poisson packets=10k")
        (row,) = report["rows"]
        growth = row["growth"]
        assert growth is not None
        # 312 rounds of a loop in the end, of 5 cycles each: 7/8 of that in the last quarter, 1/8 in the first.
        assert growth["last_ns"] - growth["first_ns"] == pytest.approx(0.75 * 312 * 5, rel=0.2)
        assert growth["mean_ns"] == pytest.approx(row["handler_ns"], rel=0.02)
        loads.append(row["loads"]["hpus"] / rate)
        assert row["loads"]["hpus"] == pytest.approx(growth["last_ns"] * rate / 16e3, rel=0.02)
        assert row["capacity_fraction"] == pytest.approx(1 / row["loads"]["hpus"], rel=0.05)
        assert "handlers take longer and longer" in line_rate_text(report)
    assert loads[0] == pytest.approx(loads[1], rel=0.02)
    (row,) = check(tmp_path, WORK, "rate=12Mpps arrivals=poisson packets=10k")["rows"]
    assert row["growth"] is None


def test_many_times_a_rate_has_no_digits(nicety: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "mine.c"
    file.write_text(WORK)
    command = ["bench", "handlers", file, "--nic", "spin-100g", "--traffic", "udp size=60 rate=1kpps packets=50"]
    table = tmp_path / "rows.csv"
    done = nicety(*command, "--csv", table)
    assert done.status == 0, done.stderr
    assert "sustainable rate more than 1000 x offered rate" in " ".join(done.stdout.replace("\n#", "").split())
    head, values = (line.split(",") for line in table.read_text().splitlines())
    assert float(values[head.index("trial_rate_fraction")]) > 1000


def test_the_sustained_rate_with_loss_is_the_rate_without(tmp_path: Path) -> None:
    """One packet in a hundred takes a hundred times as long: others wait behind it, and no part is overloaded."""
    file = tmp_path / "mine.c"
    file.write_text("""#include <handler.h>
    __handler__ void packet(handler_args_t *args) {
        const uint32_t *words = args->task->pkt_mem;
        const uint32_t hash = words[7] * 2654435761u >> 16;
        for (int i = hash % 100 == 0 ? 5000 : 50; i > 0; i--) __asm__ volatile("nop");
    }
    void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {
        *hh = NULL; *ph = packet; *th = NULL; *memory = NULL;
    }
    """)
    traffic = "udp src=10.0.0.0/8 flows=1M size=64 rate=8Mpps arrivals=poisson packets=20k"

    def check(*, lossy: bool) -> LineRateRow:
        (row,) = nicety.check_line_rate(file, nics="pspin", traffic=traffic, lossy=lossy)["rows"]
        return row

    lost, waited = check(lossy=True), check(lossy=False)
    assert lost["traffic"]["dropped_by_overload"] == 0
    assert lost["capacity_fraction"] == pytest.approx(waited["capacity_fraction"], rel=0.05)
    # Processors alone would allow 32 cores over the mean.
    assert lost["capacity_fraction"] < 0.5 / lost["loads"]["hpus"]


def test_a_table_that_fills_up_near_the_end_is_judged_by_its_end(tmp_path: Path) -> None:
    fills = """#include <frame.h>
    __handler int frame_handler(const frame_t *frame, void *state) {
        uint32_t *keys = state;
        const uint32_t key = frame_load32(frame->data + 26) | 1;
        uint32_t at = key * 2654435761u >> 23;
        for (int tried = 0; tried < 512; tried++, at = (at + 1) & 511) {
            if (keys[at] == key) break;
            if (!keys[at]) { keys[at] = key; break; }
        }
        return FRAME_DROP;
    }
    """
    file = tmp_path / "mine.c"
    file.write_text(fills)
    traffic = "udp src=10.0.0.0/8 flows=1M size=60 rate=1Mpps packets="
    full, still = (
        nicety.check_line_rate(file, nics="spin-100g", traffic=f"{traffic}{packets}", state_bytes=2048)["rows"][0]
        for packets in (560, 256)
    )
    growth = full["growth"]
    assert growth is not None
    # A table without a free place is searched completely: 512 places of some cycles each.
    assert growth["last_ns"] > 1024 > 10 * growth["first_ns"]
    assert full["loads"]["hpus"] == pytest.approx(growth["last_ns"] / 16e3, rel=0.02)
    # Half full, few places are looked at.
    assert still["loads"]["hpus"] < full["loads"]["hpus"] / 10


def test_the_verdict_is_told_before_the_search_and_then_its_steps(tmp_path: Path) -> None:
    told: list[str] = []
    (row,) = check(tmp_path, WORK, "rate=10Mpps packets=4k", news=told.append)["rows"]
    first, *steps = told
    assert first == "spin-100g, traffic: yes: the card keeps up; searching for the sustainable rate"
    most, least = row["sustained_fraction"], row["not_sustained_fraction"]
    assert steps[0] == "spin-100g, traffic: sustainable rate: at least 1.00 x the offered rate"
    assert len(steps) < len(row["trials"]) + 1
    assert any(f" {least:.2f} x" in step for step in steps) or f"{most:.2f} x" in " ".join(steps)
    told.clear()
    check(tmp_path, WORK, "packets=4k", news=told.append)
    assert told[0] == "spin-100g, traffic: no: the card does not keep up; searching for the sustainable rate"


def test_progress_appears_on_stderr_in_longer_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NICETY_NEWS")
    bar = Bar("measuring", terminal=False)
    bar.tell("yes")
    bar.tell("2 x")
    assert capsys.readouterr().err == ""
    # As the timer does.
    bar._say_all()
    assert capsys.readouterr().err == "nicety: yes\nnicety: 2 x\n"
    bar.tell("3 x")
    assert capsys.readouterr().err == "nicety: 3 x\n"
    bar.end()
    bar.tell("4 x")
    assert capsys.readouterr().err == ""


POLICE = """#include <frame.h>
typedef struct { uint32_t lock, tokens, since, limited; } bucket_t;
__handler int frame_handler(const frame_t *frame, void *state) {
    bucket_t *bucket = (bucket_t *)state + (frame_load32(frame->data + 26) * 2654435761u >> 24);
    uint32_t now;
    __asm__ volatile("csrr %0, time" : "=r"(now));
    while (__atomic_exchange_n(&bucket->lock, 1, __ATOMIC_ACQUIRE))
        while (__atomic_load_n(&bucket->lock, __ATOMIC_RELAXED)) ;
    const int32_t gained = now - bucket->since;
    if (gained > 0) {
        bucket->since = now;
        bucket->tokens += gained;
        if (bucket->tokens > 65536) bucket->tokens = 65536;
    }
    const int passes = bucket->tokens >= frame->length;
    if (passes) bucket->tokens -= frame->length; else bucket->limited++;
    __atomic_store_n(&bucket->lock, 0, __ATOMIC_RELEASE);
    return passes ? SENDS : FRAME_DROP;
}
"""


def test_handlers_that_hold_a_lock_and_send_on_sustain_what_the_lock_lets_through(tmp_path: Path) -> None:
    """The link takes 14.9 times the rate. The lock's throughput is visible if packets wait all the time."""
    file = tmp_path / "mine.c"
    udp = "udp src=10.0.0.0/8 sport=1024-65535 flows=1 size=60 packets=10k"
    options: LineRateOptions = {"nics": "spin-100g", "state_bytes": 4096}
    file.write_text(POLICE.replace("SENDS", "FRAME_DROP"))
    (full,) = nicety.check_line_rate(file, traffic=udp, **options)["rows"]
    assert full["limited_by"] == "lock"
    file.write_text(POLICE.replace("SENDS", "FRAME_WIRE"))
    for more in ({}, {"lossy": True}, {"pfc": True}):
        (row,) = nicety.check_line_rate(file, traffic=f"{udp} rate=10Mpps", **options, **more)["rows"]
        assert (row["verdict"], row["bottleneck"]) == ("yes", "lock")
        assert sustained(row) == pytest.approx(full["packets_per_s"], rel=0.03)
        bounded(row)

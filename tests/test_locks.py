"""The limit of handlers that wait for one word of memory: derived from their accesses, and compared with
simulations."""

from __future__ import annotations

from pathlib import Path

import pytest

import nicety
from nicety._generated.types import LineRateRow
from nicety.bench.line_rate import line_rate_text

HEAD = """#include <nicety.h>
typedef struct { uint64_t lock; uint32_t count, next, serving; } state_t;
static inline void work(volatile uint32_t *count, int n) {
    for (int i = 0; i < n; i++)
        *count = *count * 3 + 1;
}
__handler int payload_handler(const ptl_payload_t p, void *state) {
    state_t *s = state;
    uint32_t *lock __attribute__((unused)) = (uint32_t *)&s->lock;
"""
TAIL = """
    volatile uint32_t own = 0;
    work(&own, BESIDE);
    return SUCCESS;
}
"""
BODY = "    work(&s->count, WORK);\n"
GIVE_BACK = "    __atomic_store_n(lock, 0, __ATOMIC_RELEASE); /* give back */\n"
LOCKS = {
    "swap": "    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)); /* take */\n" + BODY + GIVE_BACK,
    "lr/sc": "    uint32_t free;\n    do free = 0; while (\n"
    "        !__atomic_compare_exchange_n(lock, &free, PtlHandlerHPU() + 1, 0, 2, 0)); /* take */\n" + BODY + GIVE_BACK,
    "CAS": "    while (!PtlHandlerCAS(&s->lock, 0, 1)); /* take */\n"
    + BODY
    + "    *(volatile uint64_t *)&s->lock = 0; /* give back */\n",
    "test and set": "    do while (__atomic_load_n(lock, 0)); /* wait */\n"
    "    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)); /* take */\n" + BODY + GIVE_BACK,
    "yield": "    while (!PtlHandlerCAS(&s->lock, 0, 1)) /* take */\n        PtlHandlerYield();\n" + BODY + GIVE_BACK,
    "ticket": "    const uint32_t mine = __atomic_fetch_add(&s->next, 1, 0);\n"
    "    while (__atomic_load_n(&s->serving, __ATOMIC_ACQUIRE) != mine); /* wait */\n"
    + BODY
    + "    __atomic_fetch_add(&s->serving, 1, __ATOMIC_RELEASE); /* take */\n",
    "stored ticket": "    const uint32_t mine = __atomic_fetch_add(&s->next, 1, __ATOMIC_RELAXED);\n"
    "    while (__atomic_load_n(&s->serving, __ATOMIC_ACQUIRE) != mine); /* wait */\n"
    + BODY
    + "    __atomic_store_n(&s->serving, mine + 1, __ATOMIC_RELEASE); /* take */\n",
    "host": "    uint64_t found;\n"
    "    do { found = 0; PtlHandlerDMACASB(0, &found, 1, PTL_HANDLER_HOST_MEM); } while (found); /* take */\n"
    + BODY
    + "    found = 0;\n    PtlHandlerDMAToHostB(&found, 0, 8, PTL_HANDLER_HOST_MEM); /* give back */\n",
}


def check(folder: Path, kind: str, cores: int, *, work: int = 10, beside: int = 0, size: int = 64) -> LineRateRow:
    source = folder / "mine.c"
    source.write_text(HEAD + LOCKS[kind] + TAIL)
    (row,) = nicety.check_line_rate(
        source,
        packet_sizes=[size],
        overrides=[f"hpu.cores={cores}"],
        defines=[f"WORK={work}", f"BESIDE={beside}"],
        messages=8,
    )["rows"]
    return row


def line_of(folder: Path, comment: str) -> str:
    lines = (folder / "mine.c").read_text().splitlines()
    return "mine.c:" + str(1 + next(number for number, line in enumerate(lines) if f"/* {comment} */" in line))


@pytest.mark.parametrize("kind", LOCKS)
def test_a_lock_bounds_any_number_of_processors(tmp_path: Path, kind: str) -> None:
    few, many = check(tmp_path, kind, 4), check(tmp_path, kind, 24)
    for row in (few, many):
        assert row["limited_by"] == "lock"
        assert row["hpus_needed"] is None
        (lock, *_) = row["locks"]
        assert lock["acquired_at"] == line_of(tmp_path, "wait" if "ticket" in kind else "take")
        if "ticket" not in kind:
            assert lock["released_at"] == line_of(tmp_path, "give back")
        assert lock["waits"] > 0
        # The lock bounds the throughput: never more, and with its hand-over exactly the bound.
        assert row["line_rate_fraction"] <= row["reachable_fraction"] * 1.01
        occupied = lock["held_ns"] + lock["handover_ns"]
        assert row["line_rate_fraction"] == pytest.approx(row["packet_interval_ns"] / occupied, rel=0.02)
        # One load, including the hand-over, everywhere.
        (part,) = [part for part in row["parts"] if part["part"] == "lock"]
        assert row["loads"]["lock"] == lock["load"]
        assert part["load"] == lock["load"]
        assert lock["load"] == pytest.approx(occupied / row["packet_interval_ns"])
        assert row["capacity_fraction"] == pytest.approx(min(1 / lock["load"], row["line_rate_fraction"]))
    if kind in ("test and set", "ticket", "stored ticket"):
        assert few["locks"][0]["waited_at"] == line_of(tmp_path, "wait")
    # Any number of processors gains only a faster hand-over.
    assert many["line_rate_fraction"] == pytest.approx(few["reachable_fraction"], rel=0.06)


def test_a_release_by_a_plain_store_is_seen_when_it_happens(tmp_path: Path) -> None:
    """The store is at the end of a long slice. If it were visible at the beginning, no handler would ever wait."""
    short, long = check(tmp_path, "CAS", 4, work=10), check(tmp_path, "CAS", 4, work=110)
    each = (long["locks"][0]["held_ns"] - short["locks"][0]["held_ns"]) / 100
    assert each >= 4 * 0.4, "load, multiply, add, store and the loop take at least as many cycles"


@pytest.mark.parametrize("order", ["__ATOMIC_RELAXED", "__ATOMIC_ACQUIRE"])
def test_published_stores_are_seen_soon(tmp_path: Path, order: str) -> None:
    """Three handlers wait for a word that one writes after some work, and none changes it by an atomic operation."""
    (tmp_path / "publish.c").write_text(
        "#include <nicety.h>\ntypedef struct { uint32_t ready, sum; } state_t;\n"
        "__handler int payload_handler(const ptl_payload_t p, void *state) {\n    state_t *s = state;\n"
        "    if (p.offset) {\n"
        f"        while (!__atomic_load_n(&s->ready, {order}));\n        return SUCCESS;\n    }}\n"
        "    for (int i = 0; i < 100; i++)\n        *(volatile uint32_t *)&s->sum += 1;\n"
        "    __atomic_store_n(&s->ready, 1, __ATOMIC_RELEASE);\n    return SUCCESS;\n}\n"
    )

    async def main(host: nicety.Host) -> None:
        handlers = host.portals.attach(nicety.Handlers(tmp_path / "publish.c"), state=host.portals.hpu_alloc(8))
        counter, entry = host.portals.ct_alloc(), host.portals.pt_alloc(pt=1)
        options = ["op_put", "event_ct_comm"]
        await host.portals.me_append(host.alloc(16384), pt=entry, ct=counter, handlers=handlers, options=options)
        await host.portals.put(host.portals.md_bind(host.alloc(16384)), 16384, to=0, pt=entry)
        await host.portals.ct_wait(counter, 1)

    cycles = nicety.Cluster(1, "spin-discrete").run(main).nodes[0].portals.handler_cycles
    assert cycles < 4 * 2000, "a handler's work, and what a load that nothing orders may be late"


def test_processors_limit_until_the_lock_does(tmp_path: Path) -> None:
    few = check(tmp_path, "swap", 4, beside=100)
    assert few["limited_by"] == "handler cores"
    assert few["hpus_needed"] is None
    assert few["reachable_fraction"] < 0.5
    assert few["line_rate_fraction"] < few["reachable_fraction"] * 0.9
    many = check(tmp_path, "swap", 24, beside=100)
    assert many["limited_by"] == "lock"
    assert many["line_rate_fraction"] == pytest.approx(few["reachable_fraction"], rel=0.06)


@pytest.mark.parametrize("kind", ["swap", "lr/sc", "CAS", "test and set", "yield", "stored ticket"])
def test_a_lock_for_which_nobody_waits_is_held_as_long(tmp_path: Path, kind: str) -> None:
    # One processor waits for nobody; many hold the lock for the same time, and wait.
    alone, many = check(tmp_path, kind, 1), check(tmp_path, kind, 24)
    (lock,) = alone["locks"]
    assert (lock["waits"], lock["handover_ns"]) == (0, 0)
    assert lock["acquired_at"] == line_of(tmp_path, "wait" if "ticket" in kind else "take")
    assert lock["load"] == pytest.approx(lock["held_ns"] / alone["packet_interval_ns"])
    # It may be another kind of word.
    assert alone["loads"]["lock"] == 0
    assert not any(part["part"] == "lock" for part in alone["parts"])
    assert alone["limited_by"] == "handler cores"
    held = many["locks"][0]["held_ns"] + many["locks"][0]["handover_ns"]
    assert 0.6 * held < lock["held_ns"] < 1.05 * held


def test_a_lock_that_does_not_limit(tmp_path: Path) -> None:
    row = check(tmp_path, "swap", 8, work=4, beside=100, size=4096)
    assert row["limited_by"] is None
    assert row["sustains_line_rate"]
    assert row["reachable_fraction"] == 1
    assert row["hpus_needed"] is not None
    assert row["loads"]["lock"] < 0.5


def test_handlers_that_only_compute(tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(
        "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *state) {\n"
        "    static uint32_t all;\n    __atomic_fetch_add(&all, 1, __ATOMIC_RELAXED);\n"
        "    for (volatile int i = 0; i < 100; i++);\n    return SUCCESS;\n}\n"
    )
    (row,) = nicety.check_line_rate(tmp_path / "mine.c", packet_sizes=[64], messages=8)["rows"]
    assert (row["limited_by"], row["locks"], row["loads"]["lock"]) == ("handler cores", [], 0)
    needed = row["hpus_needed"]
    assert needed is not None
    # The claim, tested: one fewer does not keep up.
    for cores, keeps_up in ((needed - 1, False), (needed, True)):
        (row,) = nicety.check_line_rate(
            tmp_path / "mine.c", packet_sizes=[64], messages=8, overrides=[f"hpu.cores={cores}"]
        )["rows"]
        assert row["sustains_line_rate"] is keeps_up


def test_many_locks_are_no_lock(tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(
        "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *state) {\n"
        "    uint32_t *lock = (uint32_t *)state + p.offset / 64 % 16;\n"
        "    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE));\n"
        "    for (volatile int i = 0; i < 20; i++);\n"
        "    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);\n    return SUCCESS;\n}\n"
    )
    (row,) = nicety.check_line_rate(tmp_path / "mine.c", packet_sizes=[64], messages=8)["rows"]
    assert row["limited_by"] == "handler cores"
    assert row["hpus_needed"] is not None


def test_the_text_says_what_limits(tmp_path: Path) -> None:
    source = tmp_path / "mine.c"
    source.write_text(HEAD + LOCKS["swap"] + TAIL)
    text = line_rate_text(
        nicety.check_line_rate(source, packet_sizes=[64], defines=["WORK=10", "BESIDE=0"], messages=8)
    )
    words = " ".join(text.replace("\n# ", " ").split())
    assert "cores would keep up" not in words
    assert "each packet holds byte 0 of the state for" in words
    take, give_back = line_of(tmp_path, "take"), line_of(tmp_path, "give back")
    assert f"(taken at {take}, given back at {give_back})" in words
    assert f"others wait for it at {take}. With any number of cores, at most" in words
    assert any(line.endswith("Lock") for line in text.splitlines())


@pytest.mark.parametrize(("rate", "retries"), [("30Mpps arrivals=poisson", True), ("1Mpps", False)])
def test_a_counter_that_handlers_try_again_to_change_is_told(tmp_path: Path, rate: str, retries: bool) -> None:
    source = tmp_path / "counter.c"
    source.write_text("""#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    uint32_t *count = state, seen = __atomic_load_n(count, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(count, &seen, seen + 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); /* again */
    return FRAME_DROP;
}
""")
    report = nicety.check_line_rate(source, nics="spin-100g", traffic=f"udp size=60 rate={rate} packets=5000")
    (row,) = report["rows"]
    # Concurrent attempts let few succeed: once packets wait, fewer than 30 million per second come through.
    assert (row["verdict"], row["locks"]) == ("barely" if retries else "yes", [])
    assert 24e6 < row["capacity_fraction"] * row["line_rate_packets_per_s"] < 29e6
    text = " ".join(line_rate_text(report).replace("\n#", "").split())
    assert ("The card kept up in this run. With a backlog its rate falls" in text) == retries
    found = row["retries"]
    assert (found is not None) == retries
    assert ("retries an access to byte 0 of the state, at counter.c:4" in text) == retries
    if found:
        assert (found["word"], found["retried_at"]) == ("byte 0 of the state", "counter.c:4")
        assert 0.05 < found["retries_per_packet"] < 1


@pytest.mark.parametrize("where", ["handler_mem", "scratchpad[0]"])
def test_a_volatile_word_that_handlers_poll_is_seen_when_it_is_stored(tmp_path: Path, where: str) -> None:
    """No atomic operation uses the turn word of a ticket lock in PsPIN's style."""
    source = tmp_path / "ticket.c"
    source.write_text(f"""#include <handler.h>
    __handler__ void packet(handler_args_t *args) {{
        volatile int32_t *lock = args->task->{where};
        int32_t mine = amo_add(lock, 1);
        while (lock[1] != mine) {{
        }}
        for (int i = 0; i < 8; i++) lock[4 + i]++;
        GIVE_BACK;
    }}
    void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {{
        *hh = NULL; *ph = packet; *th = NULL; *memory = NULL;
    }}
    """)
    by_store, *others = (
        nicety.check_line_rate(source, nics=["pspin"], packet_sizes=[128], defines=[f"GIVE_BACK={by}"])["rows"][0]
        for by in ("lock[1] = mine + 1", "amo_add(lock + 1, 1)", "amo_swap(lock + 1, mine + 1)")
    )
    for row in (by_store, *others):
        assert (row["verdict"], row["limited_by"]) == ("no", "lock")
        assert row["packets_per_s"] == pytest.approx(by_store["packets_per_s"], rel=0.05)
        assert row["locks"][0]["held_ns"] == pytest.approx(by_store["locks"][0]["held_ns"], rel=0.1)


# Compare and swap of the loaded value, and LR with SC: 21 cycles of work in between.
TRIED = {
    "compare": """
    uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED), next;
    do { next = work(seen); } while (!__atomic_compare_exchange_n(word, &seen, next, 0, __ATOMIC_RELAXED, 0)); /* try */
    """,
    "linked": """
    uint32_t seen, failed;
    do {
        __asm__ volatile("lr.w %0, (%1)" : "=r"(seen) : "r"(word) : "memory");
        seen = work(seen);
        __asm__ volatile("sc.w %0, %1, (%2)" : "=&r"(failed) : "r"(seen), "r"(word) : "memory"); /* try */
    } while (failed);
    """,
}


@pytest.mark.parametrize("how", TRIED)
@pytest.mark.parametrize("nic", ["spin-100g", "pspin"])
def test_a_word_that_is_tried_until_nobody_was_faster_limits(tmp_path: Path, nic: str, how: str) -> None:
    """One change after another succeeds, from its load on: concurrent changes of others fail."""
    source = tmp_path / "tried.c"
    work = """static inline uint32_t work(uint32_t value) {
        for (int i = 0; i < 20; i++) __asm__ volatile("nop");
        return value + 1;
    }
    """
    if nic == "pspin":
        source.write_text(f"""#include <handler.h>
        {work}
        __handler__ void packet(handler_args_t *args) {{
            uint32_t *word = args->task->handler_mem;
            {TRIED[how]}
        }}
        void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {{
            *hh = NULL; *ph = packet; *th = NULL; *memory = NULL;
        }}
        """)
    else:
        source.write_text(f"""#include <frame.h>
        {work}
        __handler int frame_handler(const frame_t *frame, void *state) {{
            uint32_t *word = state;
            {TRIED[how]}
            return FRAME_DROP;
        }}
        """)
    udp = "udp src=10.0.0.0/8 size=60"
    report = nicety.check_line_rate(source, nics=nic, traffic=f"{udp} packets=5000")
    (full,) = report["rows"]
    assert (full["verdict"], full["limited_by"], full["locks"]) == ("no", "contended word", [])
    load, retries = full["loads"]["contended_word"], full["retries"]
    assert retries is not None
    assert retries["load"] == load
    # It is busy all the time, and each change takes at least the 20 cycles.
    assert 0.9 < load * full["line_rate_fraction"] < 1.01
    assert retries["update_ns"] > 20
    text = " ".join(line_rate_text(report).replace("\n#", "").split())
    assert f"each packet changes byte 0 of the state {retries['update_ns']:.3f} ns after it has loaded it" in text
    assert "cores would keep up" not in text
    assert "Also above 100%: " in text
    assert f"handler cores {100 * full['loads']['hpus']:.1f}%" in text
    assert "Headroom: " in text
    assert " -" not in text.partition("Headroom: ")[2].partition(". ")[0]
    (few,) = nicety.check_line_rate(source, nics=nic, traffic=f"{udp} packets=5000 rate=1Mpps arrivals=poisson")["rows"]
    assert (few["verdict"], few["bottleneck"]) == ("yes", "contended word")
    # Cores of pspin have one clock. If all of them try, they do so in step: fewer changes succeed than below that.
    assert 0.9 < few["capacity_fraction"] * 1e6 / full["packets_per_s"] < (1.6 if nic == "pspin" else 1.1)

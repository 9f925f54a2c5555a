//! The sections of a card's access to host memory over PCI Express: `[bus.memory]`, `[bus.iommu]`, `[bus.commands]` and
//! `[bus.engines]`. A spec may have none of them.

use nicety_host::pcie::{AccessSpec, EnginesSpec, IommuSpec, RootSpec};
use nicety_spec::{Reader, Section};
use nicety_types::Duration;

/// The last-level cache of most CPUs has lines of this size.
const LINE: u64 = 64;

fn is_present(s: &Section<'_>, keys: &[&str]) -> bool {
    keys.iter().any(|key| s.has(key))
}

const CACHE: [&str; 6] = ["cache", "ways", "io_ways", "miss", "partial", "write_back"];

const IOMMU: [&str; 4] = ["entries", "page", "walk", "walkers"];

/// Refuses the first key of these sections, for a spec of a bus that is not PCI Express.
pub(super) fn refuse_access(reader: &Reader<'_>, refuse: impl Fn(&Section<'_>, &str)) {
    let sections: [(&str, &[&str]); 5] = [
        ("bus.memory", &CACHE),
        ("bus.memory", &["remote"]),
        ("bus.iommu", &IOMMU),
        ("bus.commands", &COMMANDS),
        ("bus.engines", &ENGINES),
    ];
    for (path, keys) in sections {
        let s = reader.section(path);
        if let Some(key) = keys.iter().find(|key| s.has(key)) {
            refuse(&s, key);
            return;
        }
    }
}

/// Reads `[bus.memory]`, if the spec has it.
pub(super) fn read_root(reader: &Reader<'_>) -> Option<RootSpec> {
    let s = reader.section("bus.memory");
    if !is_present(&s, &CACHE) {
        return None;
    }
    let spec = RootSpec {
        cache: s.size("cache", 1 << 12..=1 << 32, "the last-level cache behind the root complex"),
        ways: s.count("ways", 1..=64, "ways of this cache"),
        io_ways: s.count(
            "io_ways",
            0..=64,
            "ways in which writes of cards are allocated; 0: writes go to memory",
        ),
        miss: s.time("miss", "additional time of a read by the card if a line is not in this cache"),
        partial: s.time("partial", "time until a line that the card wrote in part is merged"),
        write_back: s.time("write_back", "time until a dirty line has made room for a write of the card"),
    };
    if spec.io_ways > spec.ways {
        let message = format!("the cache has {} ways", spec.ways);
        s.refuse("io_ways", &message, "write at most bus.memory.ways");
    }
    if spec.cache < LINE * spec.ways {
        let message = format!("{} ways of lines of {LINE} B are {} B", spec.ways, LINE * spec.ways);
        s.refuse("cache", &message, "write a larger cache, or fewer ways");
    }
    Some(spec)
}

/// Reads `bus.memory.remote`, if the spec has it.
pub(super) fn read_remote(reader: &Reader<'_>) -> Duration {
    let s = reader.section("bus.memory");
    if !s.has("remote") {
        return Duration::ZERO;
    }
    s.time("remote", "one crossing to the socket of the memory, if the card is at another socket")
}

/// Reads `[bus.iommu]`, if the spec has it.
pub(super) fn read_iommu(reader: &Reader<'_>) -> Option<IommuSpec> {
    let s = reader.section("bus.iommu");
    if !is_present(&s, &IOMMU) {
        return None;
    }
    let spec = IommuSpec {
        entries: s.count("entries", 1..=4096, "pages in the TLB of the IOMMU"),
        page: s.size("page", 4096..=1 << 30, "a page of the IOMMU"),
        walk: s.time("walk", "a walk of the page tables"),
        walkers: s.count("walkers", 1..=1024, "walks at the same time"),
    };
    if !spec.page.is_power_of_two() {
        let message = format!("a page of {} B is no power of two", spec.page);
        s.refuse("page", &message, "write 4 KiB, 2 MiB or 1 GiB");
    }
    Some(spec)
}

const COMMANDS: [&str; 7] = ["clock", "step", "issue", "finish", "pull", "gap", "most"];

const ENGINES: [&str; 15] = [
    "count",
    "descriptor",
    "read",
    "write",
    "setup",
    "read_move",
    "write_move",
    "line",
    "word",
    "write_line",
    "write_gap",
    "transaction",
    "turn",
    "workers",
    "pause",
];

/// Reads `[bus.commands]` and `[bus.engines]`, if the spec has a key of them.
pub(super) fn read_access(reader: &Reader<'_>) -> Option<AccessSpec> {
    let (c, e) = (reader.section("bus.commands"), reader.section("bus.engines"));
    if !is_present(&c, &COMMANDS) && !is_present(&e, &ENGINES) {
        return None;
    }
    Some(AccessSpec {
        clock: c.frequency_or("clock", "1 GHz", "the clock of the cores that measure times"),
        step: c.count_or("step", 1..=1 << 20, 1, "cycles between two values of a timestamp"),
        issue: c.time_or("issue", "0 ns", "time from a core of the card to its bus unit"),
        finish: c.time_or("finish", "0 ns", "time from the bus unit back to the waiting core"),
        pull: c.time_or("pull", "0 ns", "time until the bus unit has the first bytes of a core's registers"),
        gap: c.gap_or("gap", "0 ps/B", "time per byte between registers and bus unit"),
        most: c.size_or("most", 4..=4096, "64 B", "maximum size of a command of a core"),
        engines: read_engines(&e),
    })
}

fn read_engines(s: &Section<'_>) -> EnginesSpec {
    let spec = EnginesSpec {
        count: s.count_or("count", 1..=1024, 64, "DMA engines for reads; the same number is for writes"),
        descriptor: s.size_or("descriptor", 0..=4096, "0 B", "a transfer's descriptor"),
        read: s.time_or("read", "0 ns", "time from the descriptor of a read to its first request"),
        write: s.time_or("write", "0 ns", "time from the descriptor of a write to its engine"),
        setup: s.time_or("setup", "0 ns", "an engine's time for each read, in addition to its moves"),
        read_move: s.time_or("read_move", "0 ns", "an engine's time for a move into the card's memory"),
        write_move: s.time_or("write_move", "0 ns", "an engine's time for a move out of the card's memory"),
        line: s.size_or(
            "line",
            1..=4096,
            "64 B",
            "maximum size of a move, and the boundary that no move crosses",
        ),
        word: s.size_or(
            "word",
            1..=4096,
            "1 B",
            "the unit of a read's moves; a part of a unit is a separate move",
        ),
        write_line: s.size_or(
            "write_line",
            1..=4096,
            "64 B",
            "maximum size of a move of a write, and the boundary that no such move crosses",
        ),
        write_gap: s.time_or(
            "write_gap",
            "0 ns",
            "time between the starts of two moves of writes, of all engines together",
        ),
        transaction: s.size_or(
            "transaction",
            128..=4096,
            "4 KiB",
            "maximum number of bytes of a write that are sent together",
        ),
        turn: s.time_or("turn", "0 ns", "time of shared parts, for each transfer and each transaction"),
        workers: s.count_or("workers", 1..=4096, 64, "threads of the card that keep the engines busy"),
        pause: s.time_or("pause", "0 ns", "a thread's time between two transfers"),
    };
    if !spec.line.is_multiple_of(spec.word) {
        let message = format!("a line of {} B has no whole number of words of {} B", spec.line, spec.word);
        s.refuse("word", &message, "write a divisor of bus.engines.line");
    }
    if !spec.transaction.is_power_of_two() {
        let message = format!("a transaction of {} B is no power of two", spec.transaction);
        s.refuse("transaction", &message, "write 128 B, 256 B, 512 B or another power of two up to 4 KiB");
    }
    spec
}

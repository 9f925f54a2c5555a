//! The section of threads: hardware threads, their caches, and the costs of the operating system's scheduler.

use nicety_host::HostSpec;
use nicety_host::threads::{CachesSpec, CodeSpec, CodeTlbSpec, ThreadsSpec, TlbSpec};
use nicety_spec::{Reader, Section};

/// Reads the section `threads`. The section of the host has the cores, the clock, the memory latency, and the shared
/// cache with its line size.
pub fn read_threads(reader: &Reader<'_>, host: &HostSpec) -> ThreadsSpec {
    let s = reader.section("threads");
    let instructions = |key, doc| s.count(key, 0..=10_000_000, doc);
    let code = s.has("first_code").then(|| CodeSpec {
        first: s.size(
            "first_code",
            0..=1 << 24,
            "the first-level instruction cache of a core; 0 B if instruction fetches take no time",
        ),
        line: s.size("code_line", 4..=1 << 12, "a line of the first-level instruction cache"),
    });
    let (tlb, code_tlb) = read_tlbs(&s);
    let caches = CachesSpec {
        line: host.line,
        first: s.size("first_cache", 64..=1 << 24, "the first-level data cache of a core"),
        second: host.cache,
        second_latency: s
            .time("second_latency", "a load that misses the first level and hits the shared cache"),
        memory_latency: host.memory_latency,
        code: code.filter(|code| code.first > 0),
        tlb,
        code_tlb,
        overlap: s.count_or("overlap", 1..=64, 1, "misses that a hardware thread has in flight"),
    };
    ThreadsSpec {
        cores: host.cores,
        strands: s.count("strands", 1..=64, "hardware threads of a core") as usize,
        issue: s.count("issue", 1..=16, "instructions that a core issues in a cycle"),
        cycles_per_instruction: s.count_or(
            "cycles_per_instruction",
            1..=64,
            1,
            "cycles of an instruction; it occupies the core's issue for one of them",
        ),
        clock: host.clock,
        caches,
        switch: instructions("switch", "instructions of a context switch"),
        own_lines: s.count("own_lines", 0..=1 << 12, "lines of a thread's stack and structure"),
        walk: s.count_or(
            "walk",
            0..=10_000,
            0,
            "instructions for each other CPU in use, if a thread leaves its CPU idle and looks for a waiting thread",
        ),
        idle_walk: s.count_or(
            "idle_walk",
            0..=10_000,
            0,
            "instructions for each other CPU in use, if the idle CPU looks before it halts; meanwhile it takes no cross-call",
        ),
        wake: instructions("wake", "instructions that wake a thread"),
        cross_call: instructions("cross_call", "instructions that send a cross-call to another CPU"),
        cross_call_latency: s.time("cross_call_latency", "time from the sending of a cross-call to its arrival"),
        cross_call_taken: instructions("cross_call_taken", "instructions that take a cross-call"),
        interrupt: instructions("interrupt", "instructions from an interrupt to its handler and back"),
        quantum: s.time("quantum", "time after which a thread gives its CPU to a waiting thread"),
    }
}

/// Reads a core's TLBs, for data and for code.
fn read_tlbs(s: &Section<'_>) -> (Option<TlbSpec>, Option<CodeTlbSpec>) {
    let entries = |key, doc| s.count_or(key, 0..=1 << 20, 0, doc);
    let data = entries("data_tlb", "entries of a core's TLB for data; 0 if translating takes no time");
    let code = entries("code_tlb", "entries of a core's TLB for code; 0 if translating takes no time");
    // A card may have the keys of a TLB that an override switches off.
    let wanted = |entries: u64, key| entries > 0 || s.has(key);
    let miss = wanted(data + code, "tlb_miss").then(|| s.time("tlb_miss", "a miss in a TLB"));
    let page = wanted(code, "code_page").then(|| {
        s.size("code_page", 64..=1 << 30, "a page of code; each function group has pages of its own")
    });
    let tlb = miss.filter(|_| data > 0).map(|miss| TlbSpec { entries: data, miss });
    let code_tlb = miss.zip(page).filter(|_| code > 0);
    (tlb, code_tlb.map(|(miss, page)| CodeTlbSpec { entries: code, page, miss }))
}

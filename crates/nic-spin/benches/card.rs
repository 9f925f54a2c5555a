//! Throughput of the card model on one pair of cards.
//!
//! Packets per second of CPU time are measured for deposits and for two handlers. One is a small payload handler that
//! stores its packet. The other has 30 instructions, and its messages have a single packet.
//!
//! Simulated cycles per second of CPU time are the sum over 32 busy cores. They are measured with ideal memory, with
//! contended banks, and with data caches in front of the banks. Another figure is for short handlers that spend most of
//! their time in their start and end.
//!
//! The cost of a profile is the ratio of CPU times with it and without it, which alternate.
//!
//! To compare machines, compare the ratio of a figure to its baseline in the same run. Do not compare the figures
//! themselves.
//!
//! `cargo bench -p nicety-nic-spin --bench card` measures all figures, `-- memory` measures only those of
//! memory, and `-- profile` only those of profiles.

#[path = "../tests/support/mod.rs"]
mod support;

use cpu_time::ThreadTime;
use nicety_nic_core::parts::DueTime;
use nicety_nic_spin::Target;
use nicety_types::{Duration, NodeId, Path};
use std::cell::Cell;
use support::code::{Code, number, payload};
use support::*;

const PACKET: usize = 1024;
const MESSAGE: usize = 64 * PACKET;
const MESSAGES: u64 = 3000;

/// Returns a handler that stores its packet by DMA: 11 instructions.
fn store() -> Code {
    use nicety_hpu::asm::*;
    Code::new()
        .with(&[lw(A1, 8, A0), lw(A2, 4, A0), lw(A0, 0, A0)])
        .small(A3, 0)
        .small(A4, 0)
        .command(number::DMA_TO_HOST)
        .returns(0)
}

fn packets_per_s(handlers: bool) -> f64 {
    let mut rig = Rig::new(&["packet.payload=1 KiB"]);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&pattern(MESSAGE, 1)), 5);
        a.start().await;
        // The path records no stages.
        a.path.set(Path::clock(a.sim.now()));
        for _ in 0..MESSAGES {
            a.put(&request).await.unwrap();
            // The delay is about a message's time on the link, so that few messages queue.
            a.sim.delay(Duration::from_ns(1300)).await;
        }
    });
    rig.program(1, async move |b| {
        let me = counted(&b.alloc(&[0; MESSAGE]), 5, b.ct);
        match handlers {
            true => b.append_with(me, &payload(store()), &[]).await.unwrap(),
            false => b.append(me).await.unwrap(),
        };
        b.count(b.ct, MESSAGES).await.unwrap();
    });
    let begun = ThreadTime::now();
    rig.run();
    (MESSAGES * (MESSAGE / PACKET) as u64) as f64 / begun.elapsed().as_secs_f64()
}

/// Returns a handler of 30 instructions. It hashes four words of its packet and counts the packet in the state.
fn count() -> Code {
    use nicety_hpu::asm::*;
    let word = |at| [lw(T1, 4 * at, A0), xor(T0, T0, T1), slli(T2, T0, 5), add(T0, T0, T2), srli(T2, T0, 7)];
    let words = [word(0), word(1), word(2), word(3)].concat();
    let counts =
        [andi(T0, T0, 63), slli(T0, T0, 2), add(T0, T0, S0), lw(T1, 0, T0), addi(T1, T1, 1), sw(T1, 0, T0)];
    Code::enter().with(&[lw(A0, 0, A0)]).with(&words).with(&counts).returns(0)
}

/// Returns the number of single-packet messages of 256 B per second of CPU time. They arrive at slightly less than the
/// matching unit's rate. `profiled` counts the handlers' cycles by instruction.
fn one_packet_messages_per_s(profiled: bool) -> f64 {
    const EACH: u64 = 100_000;
    let mut rig = Rig::new(&["packet.payload=1 KiB"]);
    rig.program(0, async |a| {
        a.start().await;
        let mut left = EACH;
        let target = Target { node: NodeId(1), pt: PT, match_bits: 5 };
        let next = move |packet: &mut Vec<u8>| {
            left = left.checked_sub(1)?;
            packet.clear();
            packet.extend((0..256u32).map(|at| (at ^ left as u32) as u8));
            Some(DueTime::after(31_000 * (EACH - left), 31_000 * (EACH - left + 1)))
        };
        assert_eq!(a.card.offer(target, next, &Cell::new(false)).await.packets, EACH);
    });
    if profiled {
        rig.nodes[1].card.processors().profile();
    }
    rig.program(1, async move |b| {
        let me = counted(&b.alloc(&[0; 1024]), 5, b.ct);
        b.append_with(me, &payload(count()), &[0; 256]).await.unwrap();
        b.count(b.ct, EACH).await.unwrap();
    });
    let begun = ThreadTime::now();
    rig.run();
    EACH as f64 / begun.elapsed().as_secs_f64()
}

/// Returns a handler that changes words of the state. A round of 12 cycles has 2 accesses. Each processor uses its own
/// words.
fn change_words() -> Code {
    use nicety_hpu::asm::*;
    let round = [
        lw(T0, 0, T2),
        addi(T3, T3, 1),
        xor(T4, T3, T0),
        add(T4, T4, T3),
        srli(T5, T4, 3),
        add(T4, T4, T5),
        sw(T4, 4, T2),
        addi(T1, T1, -1),
        bne(T1, ZERO, -32),
    ];
    Code::enter()
        .with(&[csrrs(T2, 0xf14, ZERO), slli(T2, T2, 3), add(T2, T2, S0)])
        .set(T1, 20_000)
        .with(&round)
        .returns(0)
}

fn core_cycles_per_s(overrides: &[&str], profiled: bool) -> f64 {
    const PACKETS: usize = 64;
    let all = ["packet.payload=64 B", "hpu.cores=32"].iter().chain(overrides).copied().collect::<Vec<_>>();
    let mut rig = Rig::new(&all);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&pattern(PACKETS * 64, 1)), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async move |b| {
        let me = counted(&b.alloc(&[0; PACKETS * 64]), 5, b.ct);
        b.append_with(me, &payload(change_words()), &[0; 256]).await.unwrap();
        b.count(b.ct, 1).await.unwrap();
    });
    if profiled {
        rig.nodes[1].card.processors().profile();
    }
    let begun = ThreadTime::now();
    rig.run();
    rig.nodes[1].card.processors().handler_statistics().cycles as f64 / begun.elapsed().as_secs_f64()
}

/// Returns the number of simulated cycles per second of CPU time, with handlers of 30 instructions. Packets arrive as
/// fast as 32 cores take them.
fn short_runs_cycles_per_s() -> f64 {
    const MESSAGE: usize = 64 * 1000;
    const MESSAGES: u64 = 100;
    let all = ["packet.payload=64 B", "hpu.cores=32", "match.further=0 ns", "hpu.clock=1 GHz"];
    let mut rig = Rig::new(&all);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&pattern(MESSAGE, 1)), 5);
        a.start().await;
        for _ in 0..MESSAGES {
            a.put(&request).await.unwrap();
        }
    });
    rig.program(1, async move |b| {
        let me = counted(&b.alloc(&[0; MESSAGE]), 5, b.ct);
        b.append_with(me, &payload(count()), &[0; 256]).await.unwrap();
        b.count(b.ct, MESSAGES).await.unwrap();
    });
    let begun = ThreadTime::now();
    rig.run();
    rig.nodes[1].card.processors().handler_statistics().cycles as f64 / begun.elapsed().as_secs_f64()
}

/// Returns the median ratio of CPU times with a profile to those without, of runs that alternate.
fn profile_cost(run: &dyn Fn(bool) -> f64) -> f64 {
    let mut ratios: Vec<f64> = (0..7).map(|_| run(false) / run(true)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios[3]
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let best = |name: &str, unit: &str, baseline: Option<(&str, f64)>, round: &dyn Fn() -> f64| {
        if !name.contains(&only) {
            return 0.0;
        }
        let figure = (0..3).map(|_| round()).fold(0.0, f64::max);
        match baseline.filter(|(_, baseline)| *baseline > 0.0) {
            Some((of, baseline)) => println!("{name}: {unit} {figure:.0}, {:.2} of {of}", figure / baseline),
            None => println!("{name}: {unit} {figure:.0}"),
        }
        figure
    };
    let deposited = best("deposit", "packets_per_s", None, &|| packets_per_s(false));
    let baseline = Some(("deposit", deposited));
    best("stream handler", "packets_per_s", baseline, &|| packets_per_s(true));
    best("one-packet messages", "packets_per_s", baseline, &|| one_packet_messages_per_s(false));
    let banked = ["memory.state=l1", "memory.l1.banks=64"];
    let cached = |coherence: &[&'static str]| {
        // The words of each processor are in separate cache lines.
        let cache = ["memory.l1.cached=true", "memory.cache.size=4 KiB", "memory.cache.line=8 B"];
        [&banked, &cache[..], coherence].concat()
    };
    let owned = cached(&["memory.cache.invalidate=10", "memory.cache.transfer=20"]);
    let own = cached(&["memory.cache.coherence=none"]);
    let unit = "core_cycles_per_s";
    let ideal = best("ideal memory", unit, None, &|| core_cycles_per_s(&[], false));
    let baseline = Some(("ideal memory", ideal));
    for (name, overrides) in [
        ("banked memory", &banked[..]),
        ("cached memory, by ownership", &owned),
        ("cached memory, without coherence", &own),
    ] {
        best(name, unit, baseline, &|| core_cycles_per_s(overrides, false));
    }
    best("short runs, ideal memory", unit, baseline, &short_runs_cycles_per_s);
    let costs: [(&str, &dyn Fn(bool) -> f64); 3] = [
        ("profile of one-packet messages", &one_packet_messages_per_s),
        ("profile of ideal memory", &|profiled| core_cycles_per_s(&[], profiled)),
        ("profile of banked memory", &|profiled| core_cycles_per_s(&banked, profiled)),
    ];
    for (name, run) in costs.into_iter().filter(|(name, _)| name.contains(&only)) {
        println!("{name}: cost {:.3}", profile_cost(run));
    }
}

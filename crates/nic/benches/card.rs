//! Packets a second of CPU time through two cards on a pair: deposited, and stored by a small payload handler. Cycles of
//! 32 busy cores a second of CPU time, all cores together: with ideal memory, with banks at which they wait, and with data
//! caches before these.
//!
//! `cargo bench -p nicety-nic --bench card`, and with `-- memory` those of memory alone.

#[path = "../tests/support/mod.rs"]
mod support;

use cpu_time::ThreadTime;
use nicety_types::Path;
use support::code::{Code, number, payload};
use support::*;

const PACKET: usize = 1024;
const MESSAGE: usize = 64 * PACKET;
const MESSAGES: u64 = 3000;

/// Stores its packet by DMA and returns: 11 instructions.
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
        // A path without stages.
        a.path.set(Path::clock(a.sim.now()));
        for _ in 0..MESSAGES {
            a.put(&request).await.unwrap();
            // As long as the link takes, so that little piles up.
            a.sim.delay(nicety_types::Duration::from_ns(1300)).await;
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

/// Changes words of the state: 2 accesses in a round of 12 cycles, each processor to words of its own.
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

fn core_cycles_per_s(overrides: &[&str]) -> f64 {
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
    let begun = ThreadTime::now();
    rig.run();
    rig.nodes[1].card.handler_statistics().cycles as f64 / begun.elapsed().as_secs_f64()
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let best = |name: &str, unit: &str, round: &dyn Fn() -> f64| {
        if name.contains(&only) {
            println!("{name}: {unit} {:.0}", (0..3).map(|_| round()).fold(0.0, f64::max));
        }
    };
    for (name, handlers) in [("deposit", false), ("stream handler", true)] {
        best(name, "packets_per_s", &|| packets_per_s(handlers));
    }
    let banked = ["memory.state=l1", "memory.l1.banks=64"];
    let cached = |coherence: &[&'static str]| {
        // Each processor's words are a line of their own.
        let cache = ["memory.l1.cached=true", "memory.cache.size=4 KiB", "memory.cache.line=8 B"];
        [&banked, &cache[..], coherence].concat()
    };
    let owned = cached(&["memory.cache.invalidate=10", "memory.cache.transfer=20"]);
    let own = cached(&["memory.cache.coherence=none"]);
    for (name, overrides) in [
        ("ideal memory", &[][..]),
        ("banked memory", &banked),
        ("cached memory, by ownership", &owned),
        ("cached memory, without coherence", &own),
    ] {
        best(name, "core_cycles_per_s", &|| core_cycles_per_s(overrides));
    }
}

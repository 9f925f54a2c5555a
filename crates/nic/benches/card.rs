//! Packets a second of CPU time through two cards on a pair: deposited, and stored by a small payload
//! handler.
//!
//! `cargo bench -p nicety-nic --bench card`

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

fn main() {
    for (name, handlers) in [("deposit", false), ("stream handler", true)] {
        let best = (0..3).map(|_| packets_per_s(handlers)).fold(0.0, f64::max);
        println!("{name}: packets_per_s {best:.0}");
    }
}

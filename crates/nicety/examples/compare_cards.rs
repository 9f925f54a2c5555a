//! Compares the latency of a message on several cards. One card also runs with a slower bus than in its shipped specification.
//!
//! `cargo run -p nicety --example compare_cards`

use nicety::{Cluster, ClusterConfig, Duration, Error, cards};
use std::cell::Cell;
use std::rc::Rc;

/// Returns the virtual time from the start of the send until the receiver has the message.
fn latency(card: cards::Card, bytes: u64) -> Result<Duration, Error> {
    let mut cluster = Cluster::new(ClusterConfig::new(2, card))?;
    let took = Rc::new(Cell::new(Duration::ZERO));
    cluster.program(0, move |host| async move {
        let buffer = host.alloc(bytes)?;
        host.barrier().await;
        host.send(&buffer, 1, 0).await
    });
    let result = took.clone();
    cluster.program(1, move |host| async move {
        let buffer = host.alloc(bytes)?;
        host.barrier().await;
        // Both hosts leave the barrier at the same time, so this is also the time at which the sender starts.
        let start = host.now();
        host.recv(&buffer, Some(0), None).await?;
        result.set(host.now().since(start));
        Ok(())
    });
    cluster.run()?;
    Ok(took.get())
}

fn main() -> Result<(), Error> {
    let slow = vec!["bus.latency=500 ns".to_owned()];
    for (name, overrides) in [
        ("spin-discrete", vec![]),
        ("spin-discrete", slow),
        ("spin-integrated", vec![]),
        ("qnix", vec![]),
        ("ethernet-100g", vec![]),
    ] {
        let card = cards::load(name, &overrides)?;
        let (small, large) = (latency(card.clone(), 8)?, latency(card, 64 << 10)?);
        println!("{name:<16} {:<20} 8 B: {small:<14} 64 KiB: {large}", overrides.join(" "));
    }
    Ok(())
}

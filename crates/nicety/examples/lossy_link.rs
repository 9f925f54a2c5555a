//! A network that loses one packet in fifty, and a card that retransmits lost packets.
//!
//! `cargo run -p nicety --example lossy_link`

use nicety::{Cluster, ClusterConfig, Error, Faults, Rates, Run, cards, spin};

const BYTES: u64 = 1 << 20;

fn run(overrides: &[&str]) -> Result<Run, Error> {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let card = cards::load("spin-discrete", &overrides)?;
    // The seed of the faults is independent of the run's seed: it alone selects the lost packets.
    let faults = Faults { seed: 1, rates: Rates { loss: 0.02, ..Rates::default() }, ..Faults::default() };
    let mut cluster = Cluster::new(ClusterConfig { faults, ..ClusterConfig::new(2, card) })?;
    cluster.program(0, |host| async move {
        let buffer = host.alloc(BYTES)?;
        host.send(&buffer, 1, 0).await
    });
    cluster.program(1, |host| async move {
        let buffer = host.alloc(BYTES)?;
        host.recv(&buffer, Some(0), Some(0)).await?;
        Ok(())
    });
    cluster.run()
}

fn main() -> Result<(), Error> {
    let reliable = run(&["transport.reliable=true", "transport.timeout=10 us"])?;
    let sender = reliable.nodes[0].of::<spin::Report>().transport;
    println!("with transport, the run ended after {}", reliable.end);
    println!("packets sent again: {}, timeouts: {}", sender.retransmitted, sender.timeouts);
    // Without reliable transport the receiver waits for ever, and the run ends with an error that names the lost packets.
    match run(&[]) {
        Err(Error::Deadlock(text) | Error::Undelivered(text)) => println!("without transport:\n{text}"),
        other => println!("without transport: {:?}", other.map(|run| run.end)),
    }
    Ok(())
}

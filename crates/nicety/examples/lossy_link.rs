//! A network that loses one packet in fifty, and a card that sends lost packets again.
//!
//! `cargo run -p nicety --example lossy_link`

use nicety::{Cluster, ClusterConfig, Error, Faults, Rates, Run, cards, spin};

const BYTES: u64 = 1 << 20;

fn run(overrides: &[&str]) -> Result<Run, Error> {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let card = cards::load("spin-discrete", &overrides)?;
    // The seed of faults is not the seed of the run: it alone chooses the packets that are lost.
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
    // Without it the receiver waits for ever. That is an answer, too: the error names the packets.
    match run(&[]) {
        Err(Error::Deadlock(text) | Error::Undelivered(text)) => println!("without transport:\n{text}"),
        other => println!("without transport: {:?}", other.map(|run| run.end)),
    }
    Ok(())
}

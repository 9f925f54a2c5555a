//! A program with a mistake: both hosts receive before they send. The error of the run names the message that each host waits
//! for.
//!
//! `cargo run -p nicety --example deadlock`

use nicety::{Cluster, ClusterConfig, Error, cards};

fn main() -> Result<(), Error> {
    let card = cards::load("spin-discrete", &[])?;
    let mut cluster = Cluster::new(ClusterConfig::new(2, card))?;
    for rank in 0..2 {
        cluster.program(rank, |host| async move {
            let (buffer, other) = (host.alloc(8)?, 1 - host.rank());
            host.recv(&buffer, Some(other), Some(3)).await?;
            host.send(&buffer, other, 3).await
        });
    }
    // The run ends as soon as no event is left: nothing waits for real time.
    let Err(error) = cluster.run() else { unreachable!("somebody sent") };
    assert!(matches!(error, Error::Deadlock(_)));
    println!("{error}");
    // Ends with the exit status of a command with this error.
    assert_eq!(error.exit_status(), 1);
    Ok(())
}

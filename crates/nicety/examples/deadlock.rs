//! A program with a mistake: both hosts receive first. The error of the run says what each of them waits for.
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
    // Nothing waits for a real clock: where no event is left, the run is over at once.
    let Err(error) = cluster.run() else { unreachable!("somebody sent") };
    assert!(matches!(error, Error::Deadlock(_)));
    println!("{error}");
    // As a command would end.
    assert_eq!(error.exit_status(), 1);
    Ok(())
}

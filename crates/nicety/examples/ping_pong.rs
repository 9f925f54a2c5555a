//! One message and its answer. The stages of the path add up to the measured time.
//!
//! `cargo run -p nicety --example ping_pong`

use nicety::{Cluster, ClusterConfig, Error, cards};

const BYTES: u64 = 64;
const TAG: u64 = 7;

fn main() -> Result<(), Error> {
    let card = cards::load("spin-discrete", &[])?;
    let mut cluster = Cluster::new(ClusterConfig::new(2, card))?;
    cluster.program(0, |host| async move {
        let ball = host.alloc(BYTES)?;
        ball.write(0, &[1; BYTES as usize]);
        // Set-up is over on both hosts, and the clock of the path starts.
        host.barrier().await;
        host.restart_path();
        let start = host.now();
        host.send(&ball, 1, TAG).await?;
        host.recv(&ball, Some(1), Some(TAG)).await?;
        // The path crosses both cards and both buses, because it follows the message that this host waited for.
        println!("there and back: {}", host.now().since(start));
        for (stage, time) in host.path().stages() {
            println!("  {:<10} {time}", stage.name());
        }
        assert_eq!(ball.read(0, 1), [2]);
        Ok(())
    });
    cluster.program(1, |host| async move {
        let ball = host.alloc(BYTES)?;
        host.barrier().await;
        host.recv(&ball, Some(0), Some(TAG)).await?;
        ball.write(0, &[2]);
        host.send(&ball, 0, TAG).await
    });
    cluster.run()?;
    Ok(())
}

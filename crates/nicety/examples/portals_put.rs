//! Portals 4: a put into memory that the other host exposes, and counters at both ends.
//!
//! `cargo run -p nicety --example portals_put`

use nicety::portals::{AckRequest, List, Md, MdOptions, Me, MeOptions, PutRequest};
use nicety::{Cluster, ClusterConfig, Error, NodeId, cards};

const PT: u32 = 4;
const MATCH_BITS: u64 = 0xcafe;
const BYTES: u64 = 10_000;

fn main() -> Result<(), Error> {
    let card = cards::load("spin-integrated", &[])?;
    let mut cluster = Cluster::new(ClusterConfig::new(2, card))?;
    cluster.program(0, |host| async move {
        let portals = host.portals()?;
        let source = host.alloc(BYTES)?;
        source.write(0, &[7; BYTES as usize]);
        // The descriptor counts acknowledgements.
        let acknowledged = portals.ct_alloc()?;
        let md = portals.md_bind(Md {
            start: source.address(),
            length: source.len(),
            options: MdOptions::EVENT_CT_ACK,
            eq: None,
            ct: Some(acknowledged),
        })?;
        host.barrier().await; // the entry exists now
        let put =
            PutRequest { ack: AckRequest::Counting, ..PutRequest::new(md, BYTES, NodeId(1), PT, MATCH_BITS) };
        portals.put(&put).await?;
        portals.ct_wait(acknowledged, 1).await?;
        println!("{}: rank 0 has the acknowledgement", host.now());
        Ok(())
    });
    cluster.program(1, |host| async move {
        let portals = host.portals()?;
        let target = host.alloc(BYTES)?;
        let received = portals.ct_alloc()?;
        portals.pt_alloc(Some(PT), None)?;
        let entry = Me {
            start: target.address(),
            length: target.len(),
            match_bits: MATCH_BITS,
            options: MeOptions::OP_PUT | MeOptions::EVENT_CT_COMM,
            ct: Some(received),
            ..Me::default()
        };
        // The append is a command to the card. The entry exists after the card has executed that command.
        let appending = portals.me_append(PT, entry, List::Priority).await?;
        portals.appended(appending).await?;
        host.barrier().await;
        portals.ct_wait(received, 1).await?;
        assert_eq!(target.read(0, BYTES), [7; BYTES as usize]);
        println!("{}: rank 1 has all bytes", host.now());
        Ok(())
    });
    cluster.run()?;
    Ok(())
}

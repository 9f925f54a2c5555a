//! Host programs in Rust: the same calls as in Python in `crates/python/benches/calls.py`, which runs this for
//! comparison.
//!
//! `cargo bench -p nicety --bench programs` measures awaited calls a second of wall-clock time; with `-- NAME COUNT`
//! it runs one program once and prints the end of the run, in picoseconds of virtual time.

use nicety::portals::{Md, MdOptions, Me, MeOptions, PutRequest};
use nicety::{Cluster, ClusterConfig, Duration, Error, Host, NodeId, Topology, cards};
use std::time::Instant;

const BYTES: u64 = 64;
const PT: u32 = 1;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|each| each != "--bench").collect();
    if let [name, count] = &arguments[..] {
        let count = count.parse().map_err(|_| Error::Input(format!("'{count}' is no count")))?;
        println!("{}", run(name, count)?);
        return Ok(());
    }
    for (name, count, calls) in [("compute", 200_000, 200_000), ("ping-pong", 20_000, 80_000)] {
        let begun = Instant::now();
        run(name, count)?;
        println!("{name}: calls_per_s {:.0}", f64::from(calls) / begun.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Runs a program, and returns its end in picoseconds.
fn run(name: &str, count: u64) -> Result<u64, Error> {
    let card = cards::load("spin-discrete", &[])?;
    let mut cluster;
    match name {
        "compute" => {
            cluster = Cluster::new(ClusterConfig::new(1, card))?;
            cluster.program(0, async move |host| {
                for _ in 0..count {
                    host.compute(Duration::from_ns(1)).await;
                }
                Ok(())
            });
        }
        "ping-pong" => {
            cluster = Cluster::new(ClusterConfig::new(2, card))?;
            for rank in 0..2 {
                cluster.program(rank, async move |host| ping_pong(&host, count).await);
            }
        }
        "all-to-all" => {
            let topology = "fat-tree".parse::<Topology>()?;
            let config = ClusterConfig { topology, ..ClusterConfig::new(count as u32, card) };
            cluster = Cluster::new(config)?;
            for rank in 0..count as u32 {
                cluster.program(rank, async move |host| all_to_all(&host).await);
            }
        }
        other => return Err(Error::Input(format!("there is no program '{other}'"))),
    }
    Ok(cluster.run()?.end.ps())
}

/// A counter of messages into a buffer, and a descriptor of another buffer.
struct Ends {
    count: nicety::portals::CtHandle,
    md: nicety::portals::MdHandle,
}

async fn ends(host: &Host, bits: u64, out: u64, back: u64) -> Result<Ends, Error> {
    let (out, back) = (host.alloc(out)?, host.alloc(back)?);
    let portals = host.portals()?;
    let (count, pt) = (portals.ct_alloc()?, portals.pt_alloc(Some(PT), None)?);
    let options = MeOptions::OP_PUT
        | MeOptions::EVENT_COMM_DISABLE
        | MeOptions::EVENT_LINK_DISABLE
        | MeOptions::EVENT_CT_COMM;
    let (start, length, ct) = (back.address(), back.len(), Some(count));
    let me = Me { start, length, match_bits: bits, options, ct, ..Me::default() };
    let appending = portals.me_append(pt, me, nicety::portals::List::Priority).await?;
    portals.appended(appending).await?;
    let options = MdOptions::EVENT_SEND_DISABLE;
    let md = portals.md_bind(Md { start: out.address(), length: out.len(), options, eq: None, ct: None })?;
    host.barrier().await;
    Ok(Ends { count, md })
}

async fn ping_pong(host: &Host, rounds: u64) -> Result<(), Error> {
    let (own, other) = (u64::from(host.rank()), 1 - host.rank());
    let Ends { count, md } = ends(host, own, BYTES, BYTES).await?;
    let put = PutRequest::new(md, BYTES, NodeId(other), PT, 1 - own);
    for round in 1..=rounds {
        if own == 0 {
            let portals = host.portals()?;
            portals.put(&put).await?;
        }
        let portals = host.portals()?;
        portals.ct_wait(count, round).await?;
        if own == 1 {
            portals.put(&put).await?;
        }
    }
    Ok(())
}

async fn all_to_all(host: &Host) -> Result<(), Error> {
    let (rank, ranks) = (host.rank(), host.ranks());
    let Ends { count, md } = ends(host, 0, 8, 8 * u64::from(ranks)).await?;
    for step in 1..ranks {
        let to = NodeId((rank + step) % ranks);
        let remote_offset = 8 * u64::from(rank);
        let portals = host.portals()?;
        portals.put(&PutRequest { remote_offset, ..PutRequest::new(md, 8, to, PT, 0) }).await?;
    }
    let portals = host.portals()?;
    portals.ct_wait(count, u64::from(ranks) - 1).await?;
    Ok(())
}

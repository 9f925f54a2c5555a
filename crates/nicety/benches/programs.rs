//! Measures host programs in Rust. They make the same calls as the Python programs of `crates/py-ext/benches/calls.py`,
//! which compares both.
//!
//! `cargo bench -p nicety --bench programs` measures awaited calls per second of CPU time. With `-- NAME COUNT` it runs one
//! program once, and prints the virtual time of the run's end in picoseconds.

use cpu_time::ThreadTime;
use nicety::portals::{Md, MdOptions, Me, MeOptions, PutRequest};
use nicety::{Cluster, ClusterConfig, Duration, Error, Host, NodeId, Topology, cards};

const BYTES: u64 = 64;
const PT: u32 = 1;
/// Parameters of the permutation: number of hosts, messages of each host, bytes of a message, and bytes of a packet.
const HOSTS: u32 = 1024;
const FLOW: u64 = 8;
const LONG: u64 = 64 << 10;
const PACKET: u64 = 4 << 10;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|each| each != "--bench").collect();
    if let [name, count] = &arguments[..] {
        let count = count.parse().map_err(|_| Error::Input(format!("'{count}' is no count")))?;
        println!("{}", run(name, count)?);
        return Ok(());
    }
    for (name, count, calls) in [("compute", 200_000, 200_000), ("ping-pong", 20_000, 80_000)] {
        let begun = ThreadTime::now();
        run(name, count)?;
        println!("{name}: calls_per_s {:.0}", f64::from(calls) / begun.elapsed().as_secs_f64());
    }
    let begun = ThreadTime::now();
    run("permutation", u64::from(HOSTS))?;
    let packets = u64::from(HOSTS) * FLOW * LONG.div_ceil(PACKET);
    println!(
        "fat-tree with cards, hosts and bytes: packets_per_s {:.0}",
        packets as f64 / begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Runs a program, and returns the virtual time of the run's end in picoseconds.
fn run(name: &str, count: u64) -> Result<u64, Error> {
    let card = cards::load("spin-discrete", &[])?;
    let plain = |nodes| ClusterConfig { breakdown: false, ..ClusterConfig::new(nodes, card.clone()) };
    let mut cluster;
    match name {
        "compute" => {
            cluster = Cluster::new(plain(1))?;
            cluster.program(0, async move |host| {
                for _ in 0..count {
                    host.compute(Duration::from_ns(1)).await;
                }
                Ok(())
            });
        }
        "ping-pong" => {
            cluster = Cluster::new(plain(2))?;
            for rank in 0..2 {
                cluster.program(rank, async move |host| ping_pong(&host, count).await);
            }
        }
        "empty" => {
            let topology = "fat-tree".parse::<Topology>()?;
            cluster = Cluster::new(ClusterConfig { topology, ..plain(count as u32) })?;
        }
        "all-to-all" => {
            let topology = "fat-tree".parse::<Topology>()?;
            let config = ClusterConfig { topology, ..plain(count as u32) };
            cluster = Cluster::new(config)?;
            for rank in 0..count as u32 {
                cluster.program(rank, async move |host| all_to_all(&host).await);
            }
        }
        "permutation" => {
            let topology = "fat-tree".parse::<Topology>()?;
            cluster = Cluster::new(ClusterConfig { topology, ..plain(count as u32) })?;
            for rank in 0..count as u32 {
                cluster.program(rank, async move |host| permutation(&host).await);
            }
        }
        other => return Err(Error::Input(format!("there is no program '{other}'"))),
    }
    Ok(cluster.run()?.end.ps())
}

/// A counter of received messages, and the memory descriptor of the send buffer.
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

/// Each host sends its messages to one host, and receives the messages of another host.
async fn permutation(host: &Host) -> Result<(), Error> {
    let to = NodeId((5 * host.rank() + 3) % host.ranks());
    let Ends { count, md } = ends(host, 0, LONG, LONG).await?;
    let portals = host.portals()?;
    for _ in 0..FLOW {
        portals.put(&PutRequest::new(md, LONG, to, PT, 0)).await?;
    }
    portals.ct_wait(count, FLOW).await?;
    Ok(())
}

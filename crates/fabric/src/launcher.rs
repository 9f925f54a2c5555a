//! The job launcher's out-of-band network: barriers that do not use the network under study.

use crate::Symbol;
use nicety_kernel::{Channel, Sim, WireRx, WireTx, World};
use nicety_types::{Duration, NodeId};

/// A node beside the cluster that detects when every program has reached a barrier. Like any node, it communicates with
/// the hosts only over wires. So barriers do not depend on the assignment of nodes to shards.
pub struct Launcher;

/// A host's connection to the launcher.
pub struct Barrier {
    sim: Sim,
    latency: Duration,
    reached: WireTx<Symbol>,
    released: WireRx<Symbol>,
}

impl Launcher {
    /// Adds a launcher for `hosts` to the world, in the shard of the first host. `latency` is the one-way latency between
    /// a host and the launcher.
    pub fn install(world: &mut World<Symbol>, hosts: &[NodeId], latency: Duration) -> Vec<Barrier> {
        let node = match hosts {
            [first, ..] => world.add_node_beside(*first),
            [] => world.add_node(),
        };
        let sim = world.sim(node);
        // A host reaches the next barrier only after it has left the current barrier, so one slot per host is enough.
        let arrivals = std::rc::Rc::new(Channel::new(&sim, hosts.len().max(1)));
        let mut releases = Vec::with_capacity(hosts.len());
        let mut barriers = Vec::with_capacity(hosts.len());
        for &host in hosts {
            let (reached, hears) = world.wire(host, node, latency);
            let (release, released) = world.wire(node, host, latency);
            barriers.push(Barrier { sim: world.sim(host), latency, reached, released });
            releases.push(release);
            let arrivals = arrivals.clone();
            sim.spawn(async move {
                loop {
                    hears.recv().await;
                    if arrivals.send(()).await.is_err() {
                        return;
                    }
                }
            });
        }
        let clock = sim.clone();
        sim.spawn(async move {
            loop {
                for _ in 0..releases.len() {
                    if arrivals.recv().await.is_none() {
                        return;
                    }
                }
                for release in &releases {
                    release.send(clock.now() + latency, Symbol::Barrier);
                }
            }
        });
        barriers
    }
}

impl Barrier {
    /// Waits until every program of the cluster has reached this barrier.
    pub async fn wait(&self) {
        self.reached.send(self.sim.now() + self.latency, Symbol::Barrier);
        self.released.recv().await;
    }
}

//! Faults on links, by chance or by script.
//!
//! [`Faults`] describes the faults. Each direction of a link with faults has an [`Injector`], which decides for each
//! packet whether it is lost, damaged, duplicated or delayed. An injector draws from its own random stream, seeded by
//! [`Faults::seed`] and the direction. So the faults of a link do not depend on other links or on shards. A direction
//! without faults has no injector.
//!
//! On a link with its own [protocol](crate::LinkProtocol), the injector decides the faults of each transmission, and
//! the protocol recovers from them.
//!
//! **Credits do not leak.** Faults never hit credits. The far end learns of a lost packet, and frees the packet's
//! buffer slot at once.

mod injector;
mod losses;

pub(crate) use injector::{Injector, Verdict};
pub use losses::LostData;
pub(crate) use losses::{IsData, Losses};

use nicety_types::{Duration, MessageId, NodeId, Time};
use std::fmt;

/// A node in the notation of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A host, by rank.
    Host(u32),
    /// A switch, in the order of the topology.
    Switch(u32),
}

impl Place {
    /// Returns the place of a node in a network of `hosts` hosts. Node numbers of hosts come first, then those of
    /// switches.
    pub fn of(node: NodeId, hosts: u32) -> Place {
        match node.0.checked_sub(hosts) {
            None => Place::Host(node.0),
            Some(switch) => Place::Switch(switch),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Host(rank) => write!(f, "hosts.{rank}"),
            Place::Switch(number) => write!(f, "switch.{number}"),
        }
    }
}

/// The probability of each fault for a packet, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// The packet is lost.
    pub loss: f64,
    /// Bits of one byte of its header or payload are flipped.
    pub corruption: f64,
    /// The packet is duplicated.
    pub duplication: f64,
    /// The packet is delayed, and other packets may overtake it.
    pub reordering: f64,
    /// Maximum delay. The delays of delayed packets are uniform from 1 ps to this value.
    pub delay: Duration,
    /// Mean length, in packets, of bursts of lost or damaged packets. The model is Gilbert's: a link changes by chance
    /// between a good and a bad state. Zero for independent decisions.
    pub burst: f64,
}

impl Rates {
    /// Whether all probabilities are zero.
    pub fn are_zero(&self) -> bool {
        [self.loss, self.corruption, self.duplication, self.reordering].iter().all(|&rate| rate == 0.0)
    }
}

/// A time during which a link is down. Packets that begin during this time are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The beginning.
    pub from: Time,
    /// The end, exclusive; `None` for a permanent outage.
    pub until: Option<Time>,
}

impl Outage {
    fn covers(&self, time: Time) -> bool {
        self.from <= time && self.until.is_none_or(|until| time < until)
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.until {
            None => write!(f, "down from {} on", self.from),
            Some(until) => write!(f, "down from {} to {until}", self.from),
        }
    }
}

/// The faults of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkFaults {
    /// The node at the start of this direction.
    pub from: Place,
    /// The node at the end of this direction. The entry applies to all links from the first node to the second.
    pub to: Place,
    /// The rates of this direction, instead of [`Faults::rates`].
    pub rates: Rates,
    /// The times during which the direction is down.
    pub down: Vec<Outage>,
    /// Numbers of the packets to lose, counted from 1 in this direction alone.
    pub drop: Vec<u64>,
}

/// The failure of a node: from this time on, the node sends and receives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFailure {
    /// The node.
    pub node: Place,
    /// The time of the failure.
    pub at: Time,
}

/// All faults of a network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// The seed of all random numbers for faults. It is separate from the run's seed. So the faults can change while
    /// everything else stays the same.
    pub seed: u64,
    /// The rates of every direction without an entry in `links`.
    pub rates: Rates,
    /// Directions of links with their own rates, outages or lost packets.
    pub links: Vec<LinkFaults>,
    /// Failing nodes.
    pub nodes: Vec<NodeFailure>,
}

/// Invalid faults. The text has the reason and a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultsError(String);

impl fmt::Display for FaultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FaultsError {}

impl Faults {
    /// Checks that every named link and node exists. `directions` are the directions of all links between `hosts` hosts
    /// and their switches.
    pub(crate) fn check(&self, directions: &[(Place, Place)], hosts: u32) -> Result<(), FaultsError> {
        let is_host = |place: &Place| matches!(place, Place::Host(rank) if *rank < hosts);
        for LinkFaults { from, to, .. } in &self.links {
            if directions.contains(&(*from, *to)) {
                continue;
            }
            let mut near: Vec<Place> = directions.iter().filter(|d| d.0 == *from).map(|d| d.1).collect();
            near.dedup();
            let names: Vec<String> = near.iter().take(4).map(ToString::to_string).collect();
            let more = if near.len() > 4 { " and others" } else { "" };
            return Err(FaultsError(match names.as_slice() {
                [] if is_host(from) => format!("no link {from} -> {to}; {from} has no links"),
                [] => {
                    format!(
                        "no link {from} -> {to}: there is no {from}; {}",
                        Faults::places(directions, hosts)
                    )
                }
                names => {
                    format!("no link {from} -> {to}; {from} has links to {}{more}", names.join(", "))
                }
            }));
        }
        for (i, link) in self.links.iter().enumerate() {
            let LinkFaults { from, to, .. } = link;
            if self.links[..i].iter().any(|other| (other.from, other.to) == (*from, *to)) {
                return Err(FaultsError(format!(
                    "link {from} -> {to} has two entries; put all of its faults into one entry"
                )));
            }
        }
        for NodeFailure { node, .. } in &self.nodes {
            if !is_host(node) && !directions.iter().any(|d| d.0 == *node) {
                return Err(FaultsError(format!(
                    "there is no {node}; {}",
                    Faults::places(directions, hosts)
                )));
            }
        }
        Ok(())
    }

    fn places(directions: &[(Place, Place)], hosts: u32) -> String {
        let switch = |place| if let Place::Switch(number) = place { Some(number) } else { None };
        let switches = directions.iter().filter_map(|direction| switch(direction.0)).max();
        let hosts = match hosts {
            1 => "there is only hosts.0".to_owned(),
            _ => format!("there are hosts.0 to hosts.{}", hosts - 1),
        };
        match switches {
            None => hosts,
            Some(0) => hosts + ", and switch.0",
            Some(last) => format!("{hosts}, and switch.0 to switch.{last}"),
        }
    }
}

/// The cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Chance, by [`Rates::loss`].
    Chance,
    /// [`LinkFaults::drop`] has the number of this packet.
    Dropped,
    /// The link was down.
    LinkDown(Outage),
    /// A node at one of the link's ends had failed.
    NodeDown(NodeFailure),
    /// The packet was damaged and not lost. Its receiver may discard it.
    Damaged,
    /// Every transmission of the packet was damaged.
    BitErrors,
    /// The switch at [`LostPacket::from`] had no room for a packet that was to leave by this port.
    QueueFull(u32),
    /// The switch at [`LostPacket::to`] had no headroom left at this input port.
    NoHeadroom(u32),
    /// The buffer of the card at [`LostPacket::to`] was full.
    CardFull,
}

impl Cause {
    /// Whether a link or node failed.
    pub const fn is_failure(&self) -> bool {
        matches!(self, Cause::LinkDown(_) | Cause::NodeDown(_))
    }

    /// Whether a full buffer dropped the packet.
    pub const fn is_drop(&self) -> bool {
        matches!(self, Cause::QueueFull(_) | Cause::NoHeadroom(_) | Cause::CardFull)
    }
}

/// A lost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// The time at which its first byte left, or at which it was dropped.
    pub time: Time,
    /// The node at the start of the link's direction.
    pub from: Place,
    /// The node at the end of the link's direction.
    pub to: Place,
    /// The node that sent the packet.
    pub source: NodeId,
    /// Its destination.
    pub destination: NodeId,
    /// Its message.
    pub message: MessageId,
    /// Offset of its payload in the message, in bytes.
    pub offset: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// The cause.
    pub cause: Cause,
}

impl fmt::Display for LostPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LostPacket { time, from, to, source, destination, message, offset, bytes, cause, .. } = self;
        write!(f, "message {} of rank {} to rank {}", message.sequence, source.0, destination.0)?;
        match bytes {
            0 => write!(f, ", its header")?,
            bytes => write!(f, ", bytes {offset} to {}", offset + bytes - 1)?,
        }
        match cause {
            Cause::Damaged => write!(f, ", damaged on {from} -> {to} at {time}")?,
            cause if !cause.is_drop() => write!(f, ", lost on {from} -> {to} at {time}")?,
            _ => {}
        }
        match cause {
            Cause::QueueFull(port) => {
                write!(f, ", dropped by {from} at {time}: no room before its port {port} to {to}")
            }
            Cause::NoHeadroom(port) => {
                write!(f, ", dropped by {to} at {time}: no headroom at its port {port} from {from}")
            }
            Cause::CardFull => write!(f, ", dropped by the card of {to} at {time}: its buffer is full"),
            Cause::Chance | Cause::Dropped | Cause::Damaged => Ok(()),
            Cause::BitErrors => write!(f, ": damaged each time that the link sent it"),
            Cause::LinkDown(outage) => write!(f, ": the link is {outage}"),
            Cause::NodeDown(failure) => write!(f, ": {} is down from {} on", failure.node, failure.at),
        }
    }
}

/// The fault counters of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultStatistics {
    /// The node at the start of this direction.
    pub from: Place,
    /// The node at the end of this direction.
    pub to: Place,
    /// Number of packets sent.
    pub packets: u64,
    /// Number of lost packets.
    pub lost: u64,
    /// Number of packets with flipped bits.
    pub corrupted: u64,
    /// Number of duplicated packets. A packet is duplicated only if the far end has a slot for the copy.
    pub duplicated: u64,
    /// Number of delayed packets.
    pub reordered: u64,
    /// Number of resends after loss or damage, included in [`FaultStatistics::packets`].
    pub resent: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_missing_links_and_nodes_are_refused() {
        let (a, b, switch) = (Place::Host(0), Place::Host(1), Place::Switch(0));
        let star = [(a, switch), (b, switch), (switch, a), (switch, b)];
        let link = |from, to| LinkFaults { from, to, rates: Rates::default(), down: vec![], drop: vec![] };
        let links =
            |links| Faults { links, ..Faults::default() }.check(&star, 2).map_err(|error| error.to_string());
        assert_eq!(links(vec![link(a, switch), link(switch, a)]), Ok(()));
        assert_eq!(
            links(vec![link(a, b)]).unwrap_err(),
            "no link hosts.0 -> hosts.1; hosts.0 has links to switch.0"
        );
        assert_eq!(
            links(vec![link(Place::Host(2), switch)]).unwrap_err(),
            "no link hosts.2 -> switch.0: there is no hosts.2; there are hosts.0 to hosts.1, and switch.0"
        );
        assert_eq!(
            links(vec![link(a, switch), link(a, switch)]).unwrap_err(),
            "link hosts.0 -> switch.0 has two entries; put all of its faults into one entry"
        );
        let nodes = vec![NodeFailure { node: Place::Switch(1), at: Time::ZERO }];
        let error = Faults { nodes, ..Faults::default() }.check(&star, 2).unwrap_err();
        assert_eq!(error.to_string(), "there is no switch.1; there are hosts.0 to hosts.1, and switch.0");
    }

    #[test]
    fn an_outage_covers_its_first_instant_and_not_its_last() {
        let t = Time::from_ps;
        let outage = Outage { from: t(5), until: Some(t(9)) };
        assert_eq!([4, 5, 8, 9].map(|ps| outage.covers(t(ps))), [false, true, true, false]);
        assert!(Outage { from: t(5), until: None }.covers(t(1 << 60)));
    }
}

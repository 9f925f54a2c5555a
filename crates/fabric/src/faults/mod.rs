//! Faults on links, by chance or by script.
//!
//! A [`Faults`] describes them. Each direction of a link that has any gets an [`Injector`], which decides for
//! every packet put on it: whether it is lost, damaged, duplicated or delayed. It draws from its own stream,
//! seeded by [`Faults::seed`] and the direction, and draws the same number of times for every packet, so the
//! faults of one link depend on no other, and not on shards. A direction without faults has no injector.
//!
//! A link with a [protocol](crate::LinkProtocol) of its own makes up for faults: each transmission is judged.
//!
//! **Credits do not leak.** They are kept by the links themselves, and are never lost. The far end learns of
//! a lost packet, and frees its buffer slot at once.

mod injector;
mod losses;

pub(crate) use injector::{Injector, Verdict};
pub use losses::LostData;
pub(crate) use losses::{IsData, Losses};

use nicety_types::{Duration, MessageId, NodeId, Time};
use std::fmt;

/// A node, as faults name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A host, by rank.
    Host(u32),
    /// A switch, in the order of the topology.
    Switch(u32),
}

impl Place {
    /// The place of a node in a network of `hosts` hosts: they come first, and switches behind them.
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

/// The probability of each fault of a packet, from 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// It is lost.
    pub loss: f64,
    /// Bits of a byte of its header or payload are flipped.
    pub corruption: f64,
    /// It is duplicated.
    pub duplication: f64,
    /// It comes later, and others may pass it.
    pub reordering: f64,
    /// The longest delay; any number of picoseconds up to it is equally likely.
    pub delay: Duration,
    /// How many packets in a row are lost, or damaged, in the mean (Gilbert's model: a link is good or bad,
    /// and changes by chance). Zero where each packet is decided by itself.
    pub burst: f64,
}

impl Rates {
    /// Whether all are zero.
    pub fn are_zero(&self) -> bool {
        [self.loss, self.corruption, self.duplication, self.reordering].iter().all(|&rate| rate == 0.0)
    }
}

/// A time during which a link is down: packets that begin to go out then are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The beginning.
    pub from: Time,
    /// The end, exclusive; none for good.
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
    /// The node where the direction begins.
    pub from: Place,
    /// The node where it ends. Applies to all links between the two.
    pub to: Place,
    /// Used instead of [`Faults::rates`].
    pub rates: Rates,
    /// The times at which it is down.
    pub down: Vec<Outage>,
    /// Packets to lose, counted from 1 by this direction alone.
    pub drop: Vec<u64>,
}

/// A node that fails: from then on it sends and receives nothing.
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
    /// The seed of every draw. It is not the run's seed, so that faults can be changed while everything else
    /// stays.
    pub seed: u64,
    /// The rates on every direction of every link that has no entry of its own.
    pub rates: Rates,
    /// Directions of links with an entry of their own.
    pub links: Vec<LinkFaults>,
    /// Nodes that fail.
    pub nodes: Vec<NodeFailure>,
}

/// Invalid faults. The text says why, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultsError(String);

impl fmt::Display for FaultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FaultsError {}

impl Faults {
    /// Checks that every named link and node exists, where these are the directions of all links between so many hosts and
    /// their switches.
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
                    "link {from} -> {to} has two entries; put all of it into one"
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
            1 => "there is hosts.0 alone".to_owned(),
            _ => format!("there are hosts.0 to hosts.{}", hosts - 1),
        };
        match switches {
            None => hosts,
            Some(0) => hosts + ", and switch.0",
            Some(last) => format!("{hosts}, and switch.0 to switch.{last}"),
        }
    }
}

/// Why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By chance.
    Chance,
    /// Because the faults name this packet of the link.
    Dropped,
    /// Because the link was down.
    LinkDown(Outage),
    /// Because a node at one of its ends had failed.
    NodeDown(NodeFailure),
    /// Not lost in flight, but damaged, so that its receiver may have no use for it.
    Damaged,
    /// Because it was damaged each time that the link sent it.
    BitErrors,
    /// Because the switch where [`LostPacket::from`] is had no room for it before this port.
    QueueFull(u32),
    /// Because the switch where [`LostPacket::to`] is had no headroom left for what comes in by this port.
    NoHeadroom(u32),
    /// Because the buffer of the card at [`LostPacket::to`] was full.
    CardFull,
}

impl Cause {
    /// Whether a link or node failed.
    pub const fn is_failure(&self) -> bool {
        matches!(self, Cause::LinkDown(_) | Cause::NodeDown(_))
    }

    /// Whether a buffer without room for it dropped the packet.
    pub const fn is_drop(&self) -> bool {
        matches!(self, Cause::QueueFull(_) | Cause::NoHeadroom(_) | Cause::CardFull)
    }
}

/// A packet that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostPacket {
    /// When its first byte went out, or it was dropped.
    pub time: Time,
    /// Where the direction of the link begins.
    pub from: Place,
    /// Where it ends.
    pub to: Place,
    /// The node that sent the packet.
    pub source: NodeId,
    /// The node it was for.
    pub destination: NodeId,
    /// The message it was part of.
    pub message: MessageId,
    /// Where its payload began in the message's, in bytes.
    pub offset: u64,
    /// Bytes of payload.
    pub bytes: u64,
    /// Why.
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

/// The effects of faults on one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultStatistics {
    /// The node where it begins.
    pub from: Place,
    /// The node where it ends.
    pub to: Place,
    /// Packets that were put on it.
    pub packets: u64,
    /// Those that were lost.
    pub lost: u64,
    /// Those in which bits were flipped.
    pub corrupted: u64,
    /// Those that were duplicated. None is where the far end has no place for the copy.
    pub duplicated: u64,
    /// Those that were delayed.
    pub reordered: u64,
    /// Those among [`FaultStatistics::packets`] that the link sent again, having lost or damaged them.
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
            "link hosts.0 -> switch.0 has two entries; put all of it into one"
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

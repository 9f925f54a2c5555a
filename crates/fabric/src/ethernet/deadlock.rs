//! Pause deadlocks: paused ports that wait for each other in a cycle. A port is paused by the node at the far end of
//! its link. At this node, packets from the port wait for the next port of the cycle.

use crate::faults::Place;
use std::fmt;

/// A paused port with packets to send, and the neighbours from which these packets came.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// The node of the port.
    pub(crate) at: Place,
    pub(crate) port: u32,
    /// The node at the far end of the link. It has paused the port.
    pub(crate) peer: Place,
    /// The neighbours from which the packets that wait for this port arrived.
    pub(crate) from: Vec<Place>,
}

/// Paused ports in a cycle: node, port number, and the node that paused the port. At that node, packets from the port
/// wait for the next port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PausedRing(pub Vec<(Place, u32, Place)>);

impl fmt::Display for PausedRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, port, peer) in &self.0 {
            write!(f, "{at} port {port} (paused by {peer}) -> ")?;
        }
        self.0.first().map_or(Ok(()), |(at, port, _)| write!(f, "{at} port {port}"))
    }
}

/// Returns a cycle among paused ports with packets to send, if any.
pub(crate) fn ring(waits: &[Wait]) -> Option<PausedRing> {
    // The paused ports of the node at the far end at which packets from this port wait.
    let behind = |on: &Wait| {
        let (at, peer) = (on.at, on.peer);
        let waits = waits.iter().enumerate();
        waits.filter(move |(_, next)| next.at == peer && next.from.contains(&at)).map(|(number, _)| number)
    };
    let mut seen = vec![false; waits.len()];
    for start in 0..waits.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut way = vec![(start, behind(&waits[start]).collect::<Vec<_>>())];
        while let Some((_, left)) = way.last_mut() {
            let Some(next) = left.pop() else {
                way.pop();
                continue;
            };
            if let Some(from) = way.iter().position(|(on_way, _)| *on_way == next) {
                let named = |(number, _): &(usize, Vec<usize>)| {
                    let Wait { at, port, peer, .. } = waits[*number];
                    (at, port, peer)
                };
                return Some(PausedRing(way[from..].iter().map(named).collect()));
            }
            if !std::mem::replace(&mut seen[next], true) {
                way.push((next, behind(&waits[next]).collect()));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(at: u32, peer: u32, from: &[u32]) -> Wait {
        let from = from.iter().map(|&from| Place::Switch(from)).collect();
        Wait { at: Place::Switch(at), port: at + 10, peer: Place::Switch(peer), from }
    }

    #[test]
    fn a_circle_is_found_behind_ports_that_are_in_none() {
        assert_eq!(ring(&[]), None);
        assert_eq!(ring(&[wait(0, 1, &[]), wait(1, 2, &[0]), wait(2, 3, &[1])]), None);
        // The next port has paused this port, but its waiting packets came from another node.
        assert_eq!(ring(&[wait(0, 1, &[1]), wait(1, 0, &[7])]), None);
        let waits = [wait(9, 1, &[]), wait(1, 2, &[9, 3]), wait(2, 3, &[1]), wait(3, 1, &[2])];
        let found = ring(&waits).unwrap().to_string();
        assert_eq!(
            found,
            "switch.1 port 11 (paused by switch.2) -> switch.2 port 12 (paused by switch.3) -> switch.3 port 13 (paused by \
             switch.1) -> switch.1 port 11"
        );
    }
}

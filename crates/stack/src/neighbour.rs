//! Neighbours on the link: link addresses learnt by ARP and NDP, and outstanding requests.

use crate::stack::Source;
use nicety_types::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Maximum number of known neighbours, like Linux's `gc_thresh3`. Beyond it, the entry that was learnt first is
/// removed.
const MOST: usize = 1024;
/// Time between requests, and maximum number of requests (RFC 4861: RETRANS_TIMER, MAX_MULTICAST_SOLICIT).
const WAIT: Duration = Duration::from_us(1_000_000);
const TRIES: u32 = 3;

#[derive(Debug)]
struct Resolution {
    tries: u32,
    again: Time,
    waiting: Vec<Source>,
}

/// The result of a neighbour lookup.
pub(crate) enum Lookup {
    Known([u8; 6]),
    /// A request is outstanding and the source waits. If `ask` is set, the caller must send the request now.
    Waiting {
        ask: bool,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    known: BTreeMap<IpAddr, [u8; 6]>,
    order: VecDeque<IpAddr>,
    open: BTreeMap<IpAddr, Resolution>,
    /// Number of changes of known addresses. An earlier lookup is valid as long as this number is the same.
    pub version: u64,
}

impl Neighbours {
    /// Looks up the link address of a neighbour for a source. If it is unknown, adds the source to those that wait for
    /// it.
    pub fn look_up(&mut self, now: Time, address: IpAddr, source: Source) -> Lookup {
        if let Some(&mac) = self.known.get(&address) {
            return Lookup::Known(mac);
        }
        let question = self.open.get_mut(&address);
        let ask = question.is_none();
        match question {
            Some(question) if question.waiting.contains(&source) => {}
            Some(question) => question.waiting.push(source),
            None => {
                let question = Resolution { tries: 1, again: now + WAIT, waiting: vec![source] };
                self.open.insert(address, question);
            }
        }
        Lookup::Waiting { ask }
    }

    pub fn get(&self, address: IpAddr) -> Option<[u8; 6]> {
        self.known.get(&address).copied()
    }

    /// Learns the link address of a neighbour, and returns the sources that waited for it. If `asked` is false, the
    /// address is learnt only if the neighbour is known or a request for it is outstanding.
    pub fn learn(&mut self, address: IpAddr, mac: [u8; 6], asked: bool) -> Vec<Source> {
        if mac[0] & 1 != 0
            || !(asked || self.known.contains_key(&address) || self.open.contains_key(&address))
        {
            return Vec::new();
        }
        match self.known.insert(address, mac) {
            None => {
                self.order.push_back(address);
                if self.order.len() > MOST
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.known.remove(&oldest);
                }
                self.version += 1;
            }
            Some(before) if before != mac => self.version += 1,
            Some(_) => {}
        }
        self.open.remove(&address).map_or_else(Vec::new, |question| question.waiting)
    }

    pub fn next_timer(&self) -> Option<Time> {
        self.open.values().map(|question| question.again).min()
    }

    /// Returns the addresses to request again. Also returns the sources that waited for neighbours without a reply to
    /// the last request.
    pub fn on_timer(&mut self, now: Time) -> (Vec<IpAddr>, Vec<Source>) {
        let (mut again, mut lost) = (Vec::new(), Vec::new());
        self.open.retain(|&address, question| {
            if question.again > now {
                return true;
            }
            if question.tries == TRIES {
                lost.append(&mut question.waiting);
                return false;
            }
            question.tries += 1;
            question.again = now + WAIT;
            again.push(address);
            true
        });
        (again, lost)
    }
}

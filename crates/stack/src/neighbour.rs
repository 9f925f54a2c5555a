//! Who is where on the link: addresses learnt by ARP and NDP, and questions that are open.

use crate::stack::Source;
use nicety_types::{Duration, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Addresses that are remembered, as Linux's `gc_thresh3`; the one learnt first is forgotten first.
const MOST: usize = 1024;
/// How long an answer is waited for, and how often it is asked for (RFC 4861: RETRANS_TIMER, MAX_MULTICAST_SOLICIT).
const WAIT: Duration = Duration::from_us(1_000_000);
const TRIES: u32 = 3;

#[derive(Debug)]
struct Question {
    tries: u32,
    again: Time,
    waiting: Vec<Source>,
}

/// What came of looking a neighbour up.
pub(crate) enum Lookup {
    Known([u8; 6]),
    /// A question is open, and the source waits; `ask` says to send it now.
    Waiting {
        ask: bool,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    known: BTreeMap<IpAddr, [u8; 6]>,
    order: VecDeque<IpAddr>,
    open: BTreeMap<IpAddr, Question>,
    /// Counts changes, so that what was looked up before can be used as long as there are none.
    pub version: u64,
}

impl Neighbours {
    /// Looks an address up for a source, which is told when it is known or cannot be.
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
                let question = Question { tries: 1, again: now + WAIT, waiting: vec![source] };
                self.open.insert(address, question);
            }
        }
        Lookup::Waiting { ask }
    }

    pub fn get(&self, address: IpAddr) -> Option<[u8; 6]> {
        self.known.get(&address).copied()
    }

    /// Learns where an address is, and says who has waited for it. An answer without a question (`asked` is false) is
    /// learnt only where an older entry changes by it.
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

    /// Questions to ask again, and the sources that wait for an answer that did not come.
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

//! An interface with one portal table entry, and messages to it.

#![allow(dead_code, reason = "each of the two test programs uses a part of it")]

use nicety_portals::*;
use nicety_types::NodeId;

pub const NODE: NodeId = NodeId(5);
pub const PEER: NodeId = NodeId(2);

pub struct Bench {
    pub ni: Interface,
    pub effects: Effects,
    pub eq: EqHandle,
    pub ct: CtHandle,
}

pub fn bench() -> Bench {
    bench_with(Limits::default())
}

pub fn bench_with(limits: Limits) -> Bench {
    let mut ni = Interface::new(NODE, limits);
    let eq = ni.eq_alloc(16).unwrap();
    let ct = ni.ct_alloc().unwrap();
    ni.pt_alloc(Some(0), Some(eq)).unwrap();
    Bench { ni, effects: Effects::new(), eq, ct }
}

/// Returns a put of `length` bytes from `PEER`.
pub fn put(match_bits: u64, length: u64) -> Header {
    Header {
        kind: HeaderKind::Put,
        ack: AckRequest::None,
        fail: FailType::Ok,
        list: List::Priority,
        source: PEER,
        target: NODE,
        pt: 0,
        match_bits,
        length,
        remote_offset: 0,
        hdr_data: 0xda7a,
        operation: 77,
        uid: 0,
        atomic: None,
    }
}

/// Returns an entry of 100 bytes at 0x1000 that accepts puts, without a link event.
pub fn me(match_bits: u64, options: MeOptions) -> Me {
    let options = options | MeOptions::OP_PUT | MeOptions::EVENT_LINK_DISABLE;
    Me { start: 0x1000, length: 100, match_bits, options, user_ptr: match_bits, ..Me::default() }
}

impl Bench {
    pub fn append(&mut self, me: Me) -> MeHandle {
        self.ni.me_append(0, me, List::Priority, &mut self.effects).unwrap()
    }

    pub fn append_overflow(&mut self, me: Me) -> MeHandle {
        self.ni.me_append(0, me, List::Overflow, &mut self.effects).unwrap()
    }

    pub fn arrive(&mut self, header: &Header) -> Result<Delivery, DropReason> {
        match self.ni.arrive(header, &mut self.effects) {
            Arrival::Matched(delivery) => Ok(delivery),
            Arrival::Dropped(reason) => Err(reason),
            other => panic!("a request is no {other:?}"),
        }
    }

    pub fn complete(&mut self, delivery: &Delivery) {
        self.ni.complete(delivery, FailType::Ok, &mut self.effects).unwrap();
    }

    /// Receives a message that must match, and completes it at once.
    pub fn receive(&mut self, header: &Header) -> Delivery {
        let delivery = self.arrive(header).unwrap();
        self.complete(&delivery);
        delivery
    }

    /// Removes and returns the effects so far.
    pub fn take(&mut self) -> Vec<Effect> {
        self.effects.drain().collect()
    }

    /// Removes the effects so far, and returns the kind and the user word of each full event.
    pub fn kinds(&mut self) -> Vec<(EventKind, u64)> {
        let events = self.effects.drain().filter_map(|e| match e {
            Effect::Event { event, .. } => Some((event.kind, event.user_ptr)),
            _ => None,
        });
        events.collect()
    }
}

//! What follows from a handler's result.

use super::hpus::{HandlerStatistics, Kind, Run};
use super::receive::Fate;
use super::{Card, FAULTS_KEPT, Fault};
use nicety_fabric::Packet;
use nicety_portals::FailType;
use nicety_types::Path;
use std::rc::Rc;

/// What a handler may return, as numbered in nicety.h.
mod returned {
    pub const SUCCESS: u32 = 0;
    pub const SUCCESS_PENDING: u32 = 1;
    pub const PROCESS_DATA: u32 = 2;
    pub const PROCESS_DATA_PENDING: u32 = 3;
    pub const PROCEED: u32 = 4;
    pub const PROCEED_PENDING: u32 = 5;
    pub const DROP: u32 = 6;
    pub const DROP_PENDING: u32 = 7;
    pub const FAIL: u32 = -1i32 as u32;
    pub const SEGV: u32 = -2i32 as u32;
}

/// How a handler ended.
pub(super) enum Ended {
    Returned(u32),
    /// Stopped, and why.
    Stopped(String),
}

impl Ended {
    /// The name in tables.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Ended::Stopped(_) => "stopped",
            Ended::Returned(value) => match *value {
                returned::SUCCESS => "SUCCESS",
                returned::SUCCESS_PENDING => "SUCCESS_PENDING",
                returned::PROCESS_DATA => "PROCESS_DATA",
                returned::PROCESS_DATA_PENDING => "PROCESS_DATA_PENDING",
                returned::PROCEED => "PROCEED",
                returned::PROCEED_PENDING => "PROCEED_PENDING",
                returned::DROP => "DROP",
                returned::DROP_PENDING => "DROP_PENDING",
                returned::FAIL => "FAIL",
                returned::SEGV => "SEGV",
                _ => "invalid",
            },
        }
    }
}

impl Card {
    /// What follows from a handler's result.
    pub(super) fn ended(self: &Rc<Card>, index: usize, run: Run, ended: Ended, path: Path) {
        let Run { place, kind, packet, .. } = run;
        let offset = packet.as_ref().map(|packet| packet.offset);
        let value = match ended {
            Ended::Returned(value) => value,
            Ended::Stopped(why) => {
                self.fault(Some(index), format!("{} stopped: {why}", kind.name()));
                return self.failed(place, kind, packet, path);
            }
        };
        match (kind, value) {
            (Kind::Header, returned::PROCESS_DATA | returned::PROCESS_DATA_PENDING) => {
                let fate = self.attachment_of(place).expect("its handler ran").processing();
                self.decide(place, packet.expect("it ran on one"), fate, &path);
            }
            (Kind::Header, returned::PROCEED | returned::PROCEED_PENDING) => {
                self.decide(place, packet.expect("it ran on one"), Fate::Deposit, &path);
            }
            (Kind::Header, returned::DROP | returned::DROP_PENDING) => {
                self.decide(place, packet.expect("it ran on one"), Fate::Drop, &path);
            }
            (Kind::Payload, returned::SUCCESS) => self.settled(place, offset.unwrap_or(0), &path),
            (Kind::Payload, returned::DROP) => {
                self.count_dropped(place, &packet.expect("it ran on one"));
                self.settled(place, offset.unwrap_or(0), &path);
            }
            (Kind::Completion, returned::SUCCESS | returned::SUCCESS_PENDING) => {
                self.incoming.borrow_mut().get(place).path.follow(&path);
                self.advance(place);
            }
            (_, returned::FAIL | returned::SEGV) => {
                let word = if value == returned::FAIL { "FAIL" } else { "SEGV" };
                self.fault(Some(index), format!("{} returned {word}", kind.name()));
                self.failed(place, kind, packet, path);
            }
            (_, value) => {
                let allowed = match kind {
                    Kind::Header => "PROCESS_DATA, PROCEED, DROP, FAIL or SEGV",
                    Kind::Payload => "SUCCESS, DROP, FAIL or SEGV",
                    Kind::Completion => "SUCCESS, FAIL or SEGV",
                };
                self.fault(
                    Some(index),
                    format!("{} returned {}, which is none of {allowed}", kind.name(), value as i32),
                );
                self.failed(place, kind, packet, path);
            }
        }
    }

    /// A handler failed: the rest of its message is dropped, and the host gets an event that says so.
    fn failed(self: &Rc<Card>, place: usize, kind: Kind, packet: Option<Packet>, path: Path) {
        self.hpus.count(|before| HandlerStatistics { failed: before.failed + 1, ..before });
        {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            incoming.fail = FailType::HandlerError;
            incoming.path.follow(&path);
        }
        match kind {
            Kind::Header => self.decide(place, packet.expect("it ran on one"), Fate::Drop, &path),
            Kind::Payload => {
                self.incoming.borrow_mut().get(place).fate = Fate::Drop;
                self.settled(place, packet.expect("it ran on one").offset, &path);
            }
            Kind::Completion => self.advance(place),
        }
    }

    /// Keeps a fault for the run's report.
    pub(super) fn fault(&self, hpu: Option<usize>, text: String) {
        let mut faults = self.faults.borrow_mut();
        if faults.len() < FAULTS_KEPT {
            faults.push(Fault { time: self.sim.now(), node: self.node, hpu, text });
        }
    }
}

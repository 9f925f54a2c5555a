//! The effects of a handler's result.

use crate::Card;
use crate::incoming::Fate;
use nicety_nic_core::FailureKind;
use nicety_nic_processors::clusters::course::Clustered;
use nicety_nic_processors::clusters::packets::Scheduler;
use nicety_nic_processors::programs::program::Kind;
use nicety_nic_processors::ready::{Arrived, Run};
use nicety_nic_processors::running::{Ended, returned};
use nicety_nic_processors::stages;
use nicety_portals::FailType;
use nicety_types::Path;
use std::rc::Rc;

/// Returns whether a handler wants its message to leave the match entry linked.
const fn leaves_open(value: u32) -> bool {
    use returned::{DROP_PENDING, PROCEED_PENDING, PROCESS_DATA_PENDING, SUCCESS_PENDING};
    matches!(value, SUCCESS_PENDING | PROCESS_DATA_PENDING | PROCEED_PENDING | DROP_PENDING)
}

impl Card {
    /// Applies a handler's result.
    pub(crate) fn apply_result(self: &Rc<Card>, index: usize, run: Run, ended: Ended, path: Path) {
        let Run { place, kind, packet, slots, .. } = run;
        let offset = packet.as_ref().map(|packet| packet.offset);
        if kind == Kind::Completion {
            self.receive.contexts().completed();
        }
        let value = match ended {
            Ended::Returned(value) => value,
            Ended::Stopped(why) => {
                self.processors().report_failure(
                    FailureKind::Trap,
                    Some(index),
                    format!("{} stopped: {why}", kind.name()),
                );
                return self.failed(place, kind, packet, path, FailType::HandlerError);
            }
            Ended::OutOfBudget(why) => {
                self.processors().report_failure(
                    FailureKind::Budget,
                    Some(index),
                    format!("{} stopped: {why}", kind.name()),
                );
                return self.failed(place, kind, packet, path, FailType::HandlerBudget);
            }
        };
        if leaves_open(value) {
            self.incoming.borrow_mut().get(place).pending = true;
        }
        match (kind, value) {
            (Kind::Header, returned::PROCESS_DATA | returned::PROCESS_DATA_PENDING) => {
                let fate = Fate::by_default(&self.attachment_of(place).expect("its handler ran"));
                self.decide(place, packet.expect("it ran on one"), fate, &path);
            }
            (Kind::Header, returned::PROCEED | returned::PROCEED_PENDING) => {
                self.decide(place, packet.expect("it ran on one"), Fate::Deposit, &path);
            }
            (Kind::Header, returned::DROP | returned::DROP_PENDING) => {
                self.decide(place, packet.expect("it ran on one"), Fate::Drop, &path);
            }
            (Kind::Payload, returned::SUCCESS) => {
                if let Some(packet) = packet {
                    self.keep_last(place, packet, slots.buffer);
                }
                self.settled(place, offset.unwrap_or(0), &path);
            }
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
                self.processors().report_failure(
                    FailureKind::Fail,
                    Some(index),
                    format!("{} returned {word}", kind.name()),
                );
                self.failed(place, kind, packet, path, FailType::HandlerError);
            }
            (_, value) => {
                let allowed = match kind {
                    Kind::Header => "PROCESS_DATA, PROCEED, DROP, FAIL or SEGV",
                    Kind::Payload => "SUCCESS, DROP, FAIL or SEGV",
                    Kind::Completion => "SUCCESS, FAIL or SEGV",
                };
                self.processors().report_failure(
                    FailureKind::Fail,
                    Some(index),
                    format!("{} returned {}, which is none of {allowed}", kind.name(), value as i32),
                );
                self.failed(place, kind, packet, path, FailType::HandlerError);
            }
        }
    }

    /// Handles a failed handler: drops the rest of its message, and sends the host an event with the failure.
    fn failed(
        self: &Rc<Card>,
        place: usize,
        kind: Kind,
        packet: Option<Arrived>,
        path: Path,
        fail: FailType,
    ) {
        let attachment = self.attachment_of(place).expect("its handler ran");
        attachment.application().count(|statistics| statistics.failed += 1);
        self.drop_rest(place, kind, packet, path, fail);
    }

    /// Refuses a handler because its application's budget is used up. Its message fails.
    pub(crate) fn refused(self: &Rc<Card>, run: Run) {
        let Run { place, kind, packet, mut path, .. } = run;
        if kind == Kind::Completion {
            self.receive.contexts().completed();
        }
        path.advance(stages::HANDLER_QUEUED, self.sim.now());
        if self.incoming.borrow_mut().get(place).fail.is_ok() {
            self.attachment_of(place).expect("it has a handler").application().refuse();
        }
        self.drop_rest(place, kind, packet, path, FailType::HandlerBudget);
    }

    /// Fails a message at one of its handlers, and drops the rest of it.
    fn drop_rest(
        self: &Rc<Card>,
        place: usize,
        kind: Kind,
        packet: Option<Arrived>,
        path: Path,
        fail: FailType,
    ) {
        {
            let mut table = self.incoming.borrow_mut();
            let incoming = table.get(place);
            if incoming.fail.is_ok() {
                incoming.fail = fail;
            }
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
}

impl Clustered for Card {
    fn scheduler(&self) -> &Scheduler {
        &self.handlers.scheduler
    }

    fn queue_of(&self, place: usize) -> u64 {
        self.incoming.borrow_mut().get(place).queue
    }

    fn ready_in(self: &Rc<Card>, cluster: usize, run: Run) {
        self.ready_on(Some(cluster), run);
    }

    fn keeps(&self, run: &Run, ended: &Ended) -> bool {
        let Some(packet) = &run.packet else { return false };
        run.kind == Kind::Payload
            && matches!(ended, Ended::Returned(returned::SUCCESS))
            && self.incoming.borrow_mut().get(run.place).keeps(packet.offset, packet.payload.len())
    }

    fn ended(self: &Rc<Card>, core: usize, run: Run, ended: Ended, path: Path) {
        self.apply_result(core, run, ended, path);
    }
}

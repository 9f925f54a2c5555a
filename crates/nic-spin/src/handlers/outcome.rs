//! The effects of a handler's result.

use crate::Card;
use crate::incoming::Disposition;
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

/// Returns whether the result of a handler requests that the match entry stays linked after the handler's message.
const fn leaves_open(value: u32) -> bool {
    use returned::{DROP_PENDING, PROCEED_PENDING, PROCESS_DATA_PENDING, SUCCESS_PENDING};
    matches!(value, SUCCESS_PENDING | PROCESS_DATA_PENDING | PROCEED_PENDING | DROP_PENDING)
}

/// Returns a description of the result by which a handler has failed.
fn failure(kind: Kind, value: u32) -> String {
    let allowed = match kind {
        _ if value == returned::FAIL => return "returned FAIL".to_owned(),
        _ if value == returned::SEGV => return "returned SEGV".to_owned(),
        Kind::Header => "PROCESS_DATA, PROCEED, DROP, FAIL or SEGV",
        Kind::Payload => "SUCCESS, DROP, FAIL or SEGV",
        Kind::Completion => "SUCCESS, FAIL or SEGV",
    };
    format!("returned {}, which is none of {allowed}", value as i32)
}

impl Card {
    /// Applies the result of a handler that ran on a core.
    pub(crate) fn apply_result(self: &Rc<Card>, core: usize, run: Run, ended: Ended, path: Path) {
        if run.kind == Kind::Completion {
            self.receive.contexts().completed();
        }
        let value = match ended {
            Ended::Returned(value) => value,
            Ended::Stopped(why) => {
                return self.failed(core, run, path, FailureKind::Trap, &format!("stopped: {why}"));
            }
            Ended::OutOfBudget(why) => {
                return self.failed(core, run, path, FailureKind::Budget, &format!("stopped: {why}"));
            }
        };
        if leaves_open(value) {
            self.incoming.borrow_mut().get(run.place).pending = true;
        }
        let place = run.place;
        match (run.kind, value) {
            (Kind::Header, returned::PROCESS_DATA | returned::PROCESS_DATA_PENDING) => {
                let disposition =
                    Disposition::by_default(&self.attachment_of(place).expect("its handler ran"));
                self.decide(place, run.packet.expect("it ran on one"), disposition, &path);
            }
            (Kind::Header, returned::PROCEED | returned::PROCEED_PENDING) => {
                self.decide(place, run.packet.expect("it ran on one"), Disposition::Deposit, &path);
            }
            (Kind::Header, returned::DROP | returned::DROP_PENDING) => {
                self.decide(place, run.packet.expect("it ran on one"), Disposition::Drop, &path);
            }
            (Kind::Payload, returned::SUCCESS) => {
                let offset = run.packet.as_ref().map_or(0, |packet| packet.offset);
                if let Some(packet) = run.packet {
                    self.keep_last(place, packet, run.slots.buffer);
                }
                self.settled(place, offset, &path);
            }
            (Kind::Payload, returned::DROP) => {
                let packet = run.packet.expect("it ran on one");
                self.count_dropped(place, &packet);
                let offset = packet.offset;
                drop(packet);
                self.settled(place, offset, &path);
            }
            (Kind::Completion, returned::SUCCESS | returned::SUCCESS_PENDING) => {
                self.incoming.borrow_mut().get(place).path.follow(&path);
                self.advance(place);
            }
            (kind, value) => self.failed(core, run, path, FailureKind::Fail, &failure(kind, value)),
        }
    }

    /// Handles a failed handler. Drops the rest of its message, and sends the host an event with the failure.
    fn failed(self: &Rc<Card>, core: usize, run: Run, path: Path, failure: FailureKind, why: &str) {
        let Run { place, kind, packet, .. } = run;
        let fail = match failure {
            FailureKind::Budget => FailType::HandlerBudget,
            _ => FailType::HandlerError,
        };
        self.processors().report_failure(failure, Some(core), format!("{} {why}", kind.name()));
        let attachment = self.attachment_of(place).expect("its handler ran");
        attachment.application().count(|statistics| statistics.failed += 1);
        self.drop_rest(place, kind, packet, path, fail);
    }

    /// Refuses a handler because its application's budget is used up. The handler's message fails.
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
            Kind::Header => self.decide(place, packet.expect("it ran on one"), Disposition::Drop, &path),
            Kind::Payload => {
                self.incoming.borrow_mut().get(place).disposition = Disposition::Drop;
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

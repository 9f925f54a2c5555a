//! The effects of a handler's result.

use crate::Processors;
use crate::handlers::disposition::Run;
use crate::incoming::{Arrived, Disposition};
use crate::programs::program::Kind;
use crate::stages;
use crate::{Card, FAILURES_KEPT, FailureKind, ProgramFailure};
use nicety_portals::FailType;
use nicety_types::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// Return codes of handlers, as numbered in nicety.h.
pub(crate) mod returned {
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

/// The end of a handler.
pub(crate) enum Ended {
    Returned(u32),
    /// Stopped, with the reason.
    Stopped(String),
    /// Stopped because a budget of its application was used up, with the budget and the place.
    OutOfBudget(String),
}

impl Ended {
    /// Returns the name in tables.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Ended::Stopped(_) => "stopped",
            Ended::OutOfBudget(_) => "out of budget",
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

/// Returns whether a handler wants its message to leave the match entry linked.
const fn leaves_open(value: u32) -> bool {
    use returned::{DROP_PENDING, PROCEED_PENDING, PROCESS_DATA_PENDING, SUCCESS_PENDING};
    matches!(value, SUCCESS_PENDING | PROCESS_DATA_PENDING | PROCEED_PENDING | DROP_PENDING)
}

impl Card {
    /// Applies a handler's result.
    pub(crate) fn ended(self: &Rc<Card>, index: usize, run: Run, ended: Ended, path: Path) {
        let Run { place, kind, packet, slots, .. } = run;
        let offset = packet.as_ref().map(|packet| packet.offset);
        if kind == Kind::Completion {
            self.contexts.completed();
        }
        let value = match ended {
            Ended::Returned(value) => value,
            Ended::Stopped(why) => {
                self.report_failure(
                    FailureKind::Trap,
                    Some(index),
                    format!("{} stopped: {why}", kind.name()),
                );
                return self.failed(place, kind, packet, path, FailType::HandlerError);
            }
            Ended::OutOfBudget(why) => {
                self.report_failure(
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
                let disposition =
                    Disposition::by_default(&self.attachment_of(place).expect("its handler ran"));
                self.decide(place, packet.expect("it ran on one"), disposition, &path);
            }
            (Kind::Header, returned::PROCEED | returned::PROCEED_PENDING) => {
                self.decide(place, packet.expect("it ran on one"), Disposition::Deposit, &path);
            }
            (Kind::Header, returned::DROP | returned::DROP_PENDING) => {
                self.decide(place, packet.expect("it ran on one"), Disposition::Drop, &path);
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
                self.report_failure(
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
                self.report_failure(
                    FailureKind::Fail,
                    Some(index),
                    format!("{} returned {}, which is none of {allowed}", kind.name(), value as i32),
                );
                self.failed(place, kind, packet, path, FailType::HandlerError);
            }
        }
    }

    /// Returns whether the packet of an ended run is kept for a tail handler.
    pub(crate) fn keeps(&self, run: &Run, ended: &Ended) -> bool {
        let Some(packet) = &run.packet else { return false };
        run.kind == Kind::Payload
            && matches!(ended, Ended::Returned(returned::SUCCESS))
            && self.incoming.borrow_mut().get(run.place).keeps(packet.offset, packet.payload.len())
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
            self.contexts.completed();
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

impl Processors {
    /// Keeps a failure for the run's report. Equal ones are counted.
    pub(crate) fn report_failure(&self, kind: FailureKind, hpu: Option<usize>, text: String) {
        if let (FailureKind::Trap | FailureKind::Budget, Some(alarm)) = (kind, &*self.alarm.borrow()) {
            alarm.store(true, Ordering::Relaxed);
        }
        let mut failures = self.failures.borrow_mut();
        let known = failures.iter().any(|failure| failure.text == text);
        let text = match known || failures.len() < FAILURES_KEPT {
            true => text,
            false => format!("further handlers failed for other reasons ({})", kind.name()),
        };
        match failures.iter_mut().find(|failure| failure.text == text) {
            Some(same) => same.times += 1,
            None => {
                failures.push(ProgramFailure {
                    kind,
                    time: self.sim.now(),
                    node: self.node,
                    hpu,
                    text,
                    times: 1,
                });
            }
        }
    }
}

//! The handler processors: what waits for them, and who runs next.

use super::application::{Application, ApplicationId};
use super::dma::Transfers;
use crate::spec::HpuSpec;
use nicety_fabric::Packet;
use nicety_hpu::Context;
use nicety_kernel::{Signal, Sim};
use nicety_types::{Frequency, MessageId, Path, Time};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::iter::Sum;

/// Which handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Header,
    Payload,
    Completion,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Header => "header handler",
            Kind::Payload => "payload handler",
            Kind::Completion => "completion handler",
        }
    }

    /// The name in tables.
    pub(super) fn word(self) -> &'static str {
        self.name().trim_end_matches(" handler")
    }
}

/// A handler that is ready to run.
pub(super) struct Run {
    /// The message's place among the arriving ones.
    pub(super) place: usize,
    pub(super) kind: Kind,
    /// The packet, for header and payload handlers.
    pub(super) packet: Option<Packet>,
    /// Accounts for the time until it became ready.
    pub(super) path: Path,
}

/// What handlers have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerStatistics {
    /// Handlers run to their end.
    pub runs: u64,
    /// Instructions they executed.
    pub instructions: u64,
    /// Cycles they held a core, the waiting for commands and the start included.
    pub cycles: u64,
    /// Cycles of these that they waited for commands and transfers.
    pub stalled: u64,
    /// Runs among them that failed: stopped, returned an error or nonsense.
    pub failed: u64,
}

impl Sum for HandlerStatistics {
    fn sum<I: Iterator<Item = HandlerStatistics>>(of: I) -> HandlerStatistics {
        of.fold(HandlerStatistics::default(), |a, b| HandlerStatistics {
            runs: a.runs + b.runs,
            instructions: a.instructions + b.instructions,
            cycles: a.cycles + b.cycles,
            stalled: a.stalled + b.stalled,
            failed: a.failed + b.failed,
        })
    }
}

/// What one core keeps between runs.
pub(super) struct CoreState {
    pub(super) context: Context,
    pub(super) stack: Vec<u8>,
    /// The run before: whose it was and where its time went.
    pub(super) last: Option<(MessageId, Path)>,
    /// Whose handlers have used the stack.
    stack_of: ApplicationId,
}

impl CoreState {
    /// A handler of this application is next: it finds no other's bytes on the stack.
    pub(super) fn begin(&mut self, application: &Application) {
        if self.stack_of != application.id {
            self.stack_of = application.id;
            self.stack.fill(0);
        }
    }
}

/// A handler processor.
pub(super) struct Core {
    assigned: RefCell<Option<Run>>,
    wake: Signal,
    pub(super) state: RefCell<CoreState>,
    pub(super) transfers: Transfers,
}

/// The cores and the queue before them. Its length is bounded by the packet buffer: every waiting run holds a slot
/// of it, but for one completion handler a message.
pub(super) struct Hpus {
    cores: Vec<Core>,
    idle: RefCell<Vec<bool>>,
    queue: RefCell<VecDeque<Run>>,
}

impl Hpus {
    pub(super) fn new(sim: &Sim, spec: &HpuSpec) -> Hpus {
        let core = |hart: usize| Core {
            assigned: RefCell::default(),
            wake: Signal::new(sim),
            state: RefCell::new(CoreState {
                context: Context::new(hart as u32),
                stack: vec![0; spec.stack as usize],
                last: None,
                stack_of: ApplicationId::default(),
            }),
            transfers: Transfers::new(sim, spec.dma_handles),
        };
        Hpus {
            cores: (0..spec.cores).map(core).collect(),
            idle: RefCell::new(vec![false; spec.cores]),
            queue: RefCell::default(),
        }
    }

    pub(super) fn core(&self, index: usize) -> &Core {
        &self.cores[index]
    }

    /// A handler is ready: the idle core of the lowest number takes it, or it waits behind those before it.
    pub(super) fn ready(&self, run: Run) {
        let idle = self.idle.borrow().iter().position(|idle| *idle);
        match idle {
            None => self.queue.borrow_mut().push_back(run),
            Some(index) => {
                self.idle.borrow_mut()[index] = false;
                self.cores[index].assigned.replace(Some(run));
                self.cores[index].wake.notify_one();
            }
        }
    }

    /// A core has nothing to do: it takes what waits, or is idle from now on.
    pub(super) fn release(&self, index: usize) {
        let waiting = self.queue.borrow_mut().pop_front();
        self.idle.borrow_mut()[index] = waiting.is_none();
        self.cores[index].assigned.replace(waiting);
    }

    /// What a released core runs next.
    pub(super) async fn next(&self, index: usize) -> Run {
        let core = &self.cores[index];
        core.wake.wait_until(|| core.assigned.borrow().is_some()).await;
        core.assigned.take().expect("just seen")
    }
}

/// The first cycle that begins at `now` or later.
pub(super) fn cycles_until(clock: Frequency, started: Time, now: Time) -> u64 {
    let elapsed = now.since(started);
    let whole = clock.cycles_in(elapsed);
    if clock.cycles(whole) == elapsed { whole } else { whole + 1 }
}

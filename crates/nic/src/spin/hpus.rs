//! The handler processors: what waits for them, and who runs next.

use super::application::{Application, ApplicationId};
use super::dma::Transfers;
use super::fair::FairQueue;
use crate::spec::{HpuSpec, Scheduling};
use nicety_fabric::Packet;
use nicety_hpu::Context;
use nicety_kernel::{Signal, Sim};
use nicety_types::{Frequency, MessageId, Path, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::iter::Sum;
use std::rc::Rc;

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
    /// Whose run it has been at since when, where that is of interest.
    serving: Cell<Option<(usize, Time)>>,
    wake: Signal,
    pub(super) state: RefCell<CoreState>,
    pub(super) transfers: Transfers,
}

/// The cores and the queue before them. Its length is bounded by the packet buffer: every waiting run holds a slot
/// of it, but for one completion handler a message.
pub(super) struct Hpus {
    cores: Vec<Core>,
    idle: RefCell<Vec<bool>>,
    queue: RefCell<Queue>,
}

/// What waits for a core.
enum Queue {
    /// In the order in which it became ready.
    FirstCome(VecDeque<Run>),
    /// In the order of what applications have used, by weight.
    WeightedFair(FairQueue<Run>),
}

impl Hpus {
    pub(super) fn new(sim: &Sim, spec: &HpuSpec) -> Hpus {
        let core = |hart: usize| Core {
            assigned: RefCell::default(),
            serving: Cell::new(None),
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
            queue: RefCell::new(match spec.scheduling {
                Scheduling::FirstCome => Queue::FirstCome(VecDeque::new()),
                Scheduling::WeightedFair => Queue::WeightedFair(FairQueue::new()),
            }),
        }
    }

    pub(super) fn core(&self, index: usize) -> &Core {
        &self.cores[index]
    }

    /// A handler is ready: the idle core of the lowest number takes it, or it waits. `of` gives its application.
    pub(super) fn ready(&self, run: Run, now: Time, of: impl FnOnce(&Run) -> Rc<Application>) {
        let idle = self.idle.borrow().iter().position(|idle| *idle);
        let mut queue = self.queue.borrow_mut();
        match (idle, &mut *queue) {
            (None, Queue::FirstCome(queue)) => queue.push_back(run),
            (None, Queue::WeightedFair(queue)) => {
                let application = of(&run);
                queue.push(application.id.0 as usize, application.config.weight, run);
            }
            (Some(index), queue) => {
                if let Queue::WeightedFair(queue) = queue {
                    let application = of(&run);
                    let number = application.id.0 as usize;
                    queue.begin(number, application.config.weight, now);
                    self.cores[index].serving.set(Some((number, now)));
                }
                self.idle.borrow_mut()[index] = false;
                self.cores[index].assigned.replace(Some(run));
                self.cores[index].wake.notify_one();
            }
        }
    }

    /// A core has nothing to do: it takes what waits, or is idle from now on.
    pub(super) fn release(&self, index: usize, now: Time) {
        let core = &self.cores[index];
        let waiting = match &mut *self.queue.borrow_mut() {
            Queue::FirstCome(queue) => queue.pop_front(),
            Queue::WeightedFair(queue) => {
                if let Some((number, begun)) = core.serving.take() {
                    queue.end(number, begun, now);
                }
                queue.pop(now).map(|(number, run)| {
                    core.serving.set(Some((number, now)));
                    run
                })
            }
        };
        self.idle.borrow_mut()[index] = waiting.is_none();
        core.assigned.replace(waiting);
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

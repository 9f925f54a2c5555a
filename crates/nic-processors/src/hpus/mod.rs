//! The handler cores and their queue.

pub(crate) mod edges;
mod fair;
pub(crate) mod issue;

use crate::commands::transfers::Transfers;
use crate::programs::application::{Application, ApplicationId};
use crate::pspin::command_unit::CommandUnit;
use crate::pspin::hardware::Hardware;
use crate::pspin::ports::Access;
use crate::ready::Run;
use crate::spec::{HpuSpec, Scheduling};
use fair::FairQueue;
use issue::Issue;
use nicety_hpu::Context;
use nicety_hpu::profile::Profile;
use nicety_kernel::{Signal, Sim};
use nicety_types::{MessageId, Path, Time};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// The state of a handler's thread on a core.
pub struct ThreadState {
    /// The registers.
    pub context: Context,
    /// The stack.
    pub stack: Vec<u8>,
    /// Its core's registers, kept between handlers written for PsPIN.
    pub hardware: Option<Box<Hardware>>,
    /// Accesses of the slice with a wait for DMA that is not known yet.
    pub(crate) accesses: Vec<Access>,
    /// The profile of its run, if the card's handlers are profiled.
    pub(crate) profile: Option<Box<Profile>>,
    /// The application of the handlers that have used the stack.
    stack_of: ApplicationId,
}

impl ThreadState {
    /// Prepares for a handler of this application. Clears another application's bytes from the stack.
    pub fn begin(&mut self, application: &Application) {
        if self.stack_of != application.id {
            self.stack_of = application.id;
            self.stack.fill(0);
        }
    }
}

/// Registers, a stack and transfers. A core has one thread for the handler that it runs, and further ones for parked
/// handlers.
pub struct Thread {
    /// Its core.
    pub core: usize,
    /// Its state.
    pub state: RefCell<ThreadState>,
    /// The DMA transfers of its handlers.
    pub transfers: Transfers,
    /// Commands of handlers written for PsPIN.
    commands: Option<CommandUnit>,
    /// The run assigned to it.
    assigned: RefCell<Option<Run>>,
    /// Whether it has no handler, running or parked.
    free: Cell<bool>,
    /// Whether its handler is parked.
    parked: Cell<bool>,
    wake: Signal,
}

impl Thread {
    pub(crate) fn new(sim: &Sim, core: usize, spec: &HpuSpec) -> Rc<Thread> {
        Rc::new(Thread {
            core,
            state: RefCell::new(ThreadState {
                context: Context::new(core as u32),
                stack: vec![0; spec.stack as usize],
                stack_of: ApplicationId::default(),
                hardware: spec.pspin.map(|_| Box::new(Hardware::new(core, spec))),
                accesses: Vec::new(),
                profile: None,
            }),
            commands: spec.pspin.map(|commands| CommandUnit::new(sim, spec.dma_handles, commands.feedbacks)),
            transfers: Transfers::new(sim, spec.dma_handles),
            assigned: RefCell::default(),
            free: Cell::new(true),
            parked: Cell::new(false),
            wake: Signal::new(sim),
        })
    }

    /// Returns the command unit of a core that runs handlers written for PsPIN.
    pub fn commands(&self) -> &CommandUnit {
        self.commands.as_ref().expect("only cores for handlers written for PsPIN have a command unit")
    }

    /// Waits for the next run.
    pub async fn next(&self) -> Run {
        self.wake.wait_until(|| self.assigned.borrow().is_some()).await;
        self.assigned.take().expect("just seen")
    }

    /// Waits until its parked handler has the core again.
    pub async fn resumed(&self) {
        self.wake.wait_until(|| !self.parked.get()).await;
    }

    fn assign(&self, run: Run) {
        self.free.set(false);
        self.assigned.replace(Some(run));
        self.wake.notify_one();
    }
}

/// A parked handler: it has yielded.
struct Parked {
    thread: Rc<Thread>,
    /// The number of its application.
    flow: usize,
    /// The number of runs of the queue, or of its flow, that had become ready before it yielded.
    ticket: u64,
}

/// A handler core.
#[derive(Default)]
pub(crate) struct Core {
    /// Whether it has no handler.
    idle: Cell<bool>,
    /// The application that it serves and the start time, if the queue needs them.
    serving: Cell<Option<(usize, Time)>>,
    /// The message and the path of its last handler.
    pub(crate) last: RefCell<Option<(MessageId, Path)>>,
    /// Created with its first handler. Further ones are created when handlers yield.
    threads: RefCell<Vec<Rc<Thread>>>,
    /// Parked handlers, in the order in which they yielded.
    parked: RefCell<VecDeque<Parked>>,
}

/// The cores and their queue. The packet buffer bounds the queue: every waiting run holds a slot, except one
/// completion handler per message.
pub struct Hpus {
    sim: Sim,
    spec: Arc<HpuSpec>,
    /// Created with the first handler, so that a node without handlers has none.
    cores: OnceCell<Box<[Core]>>,
    queue: RefCell<Queue>,
    /// Cores that share a queue of runs.
    line_cores: usize,
    /// Number of handlers started.
    begun: Cell<u64>,
    /// The issue that threads share. None where each processor is a core of its own.
    pub(crate) issue: Option<Issue>,
}

/// The runs that wait for a core.
enum Queue {
    /// In the order in which they became ready: one queue for each cluster, or one for all cores.
    FirstCome(Box<[Line]>),
    /// By weighted fair queueing over applications.
    WeightedFair(FairQueue<Run>),
}

/// Runs that wait for the same cores, and the number of runs taken.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Run>,
    taken: u64,
}

impl Queue {
    /// Returns whether no run waits for the cores of this queue.
    fn is_empty(&self, line: usize) -> bool {
        match self {
            Queue::FirstCome(lines) => lines[line].waiting.is_empty(),
            Queue::WeightedFair(queue) => queue.is_empty(),
        }
    }

    /// Returns the parked handler that precedes every waiting run, if one does. `begins` says whether a waiting run
    /// can begin at all.
    fn parked_first(&self, line: usize, parked: &VecDeque<Parked>, now: Time, begins: bool) -> Option<usize> {
        match self {
            Queue::FirstCome(lines) => {
                let Line { waiting, taken } = &lines[line];
                let first = parked.front()?.ticket <= *taken;
                (first || !begins || waiting.is_empty()).then_some(0)
            }
            Queue::WeightedFair(queue) => {
                let tickets = parked.iter().map(|parked| (parked.flow, parked.ticket));
                queue.parked_first(tickets, now, begins)
            }
        }
    }

    fn pop(&mut self, line: usize, now: Time) -> Option<(Option<usize>, Run)> {
        match self {
            Queue::FirstCome(lines) => {
                let Line { waiting, taken } = &mut lines[line];
                let run = waiting.pop_front()?;
                *taken += 1;
                Some((None, run))
            }
            Queue::WeightedFair(queue) => queue.pop(now).map(|(flow, run)| (Some(flow), run)),
        }
    }
}

impl Hpus {
    pub(crate) fn new(sim: &Sim, spec: Arc<HpuSpec>) -> Hpus {
        let line_cores = match spec.scheduling {
            Scheduling::HomeCluster => spec.memories.cluster,
            Scheduling::FirstCome | Scheduling::WeightedFair => spec.cores,
        };
        Hpus {
            sim: sim.clone(),
            cores: OnceCell::new(),
            begun: Cell::new(0),
            issue: (spec.threads > 1).then(|| Issue::new(spec.cores / spec.threads, spec.issue)),
            queue: RefCell::new(match spec.scheduling {
                Scheduling::WeightedFair => Queue::WeightedFair(FairQueue::new()),
                Scheduling::FirstCome | Scheduling::HomeCluster => {
                    Queue::FirstCome((0..spec.cores / line_cores).map(|_| Line::default()).collect())
                }
            }),
            line_cores,
            spec,
        }
    }

    fn cores(&self) -> &[Core] {
        let core = |_| Core { idle: Cell::new(true), ..Core::default() };
        self.cores.get_or_init(|| (0..self.spec.cores).map(core).collect())
    }

    /// Returns a number for a new run.
    pub fn next_run(&self) -> u64 {
        self.begun.set(self.begun.get() + 1);
        self.begun.get()
    }

    pub(crate) fn core(&self, index: usize) -> &Core {
        &self.cores()[index]
    }

    /// Makes a handler ready in a cluster, or anywhere. The idle core with the lowest number takes it, or it waits.
    /// `of` is its application. Returns a new thread to be served, if there is one.
    pub fn ready(
        &self,
        cluster: Option<usize>,
        run: Run,
        now: Time,
        of: impl FnOnce(&Run) -> Rc<Application>,
    ) -> Option<Rc<Thread>> {
        let line = cluster.unwrap_or(0);
        let first = line * self.line_cores;
        let mut cores = self.cores()[first..first + self.line_cores].iter();
        let idle = cores.position(|core| core.idle.get()).map(|index| first + index);
        let mut queue = self.queue.borrow_mut();
        match (idle, &mut *queue) {
            (None, Queue::FirstCome(lines)) => lines[line].waiting.push_back(run),
            (None, Queue::WeightedFair(queue)) => {
                let application = of(&run);
                queue.push(application.id.0 as usize, application.config.weight, run);
            }
            (Some(index), queue) => {
                let core = self.core(index);
                if let Queue::WeightedFair(queue) = queue {
                    let application = of(&run);
                    let number = application.id.0 as usize;
                    queue.begin(number, application.config.weight, now);
                    core.serving.set(Some((number, now)));
                }
                core.idle.set(false);
                // An idle core has no parked handlers.
                if let Some(first) = core.threads.borrow().first() {
                    first.assign(run);
                    return None;
                }
                let first = self.new_thread(index);
                first.assign(run);
                return Some(first);
            }
        }
        None
    }

    /// Creates another thread for a core.
    fn new_thread(&self, index: usize) -> Rc<Thread> {
        let thread = Thread::new(&self.sim, index, &self.spec);
        self.core(index).threads.borrow_mut().push(thread.clone());
        thread
    }

    /// Ends the handler on a thread. Its core resumes a parked handler, takes a waiting one, or becomes idle.
    pub fn release(&self, thread: &Rc<Thread>, now: Time) {
        let core = self.core(thread.core);
        let mut queue = self.queue.borrow_mut();
        if let (Some((flow, begun)), Queue::WeightedFair(queue)) = (core.serving.take(), &mut *queue) {
            queue.end(flow, begun, now);
        }
        thread.free.set(true);
        self.take_up(thread.core, &mut queue, now, true, || thread.clone());
    }

    /// Returns whether a handler that yields on this core would let another one run first.
    pub fn others_wait(&self, index: usize) -> bool {
        let parked = self.core(index).parked.borrow().len();
        parked > 0 || (self.spec.parked > 0 && !self.queue.borrow().is_empty(index / self.line_cores))
    }

    /// Lets the handler on a thread, of this application, yield to [others](Hpus::others_wait). Returns a new thread
    /// to be served, if there is one.
    pub fn park(&self, thread: &Rc<Thread>, application: &Application, now: Time) -> Option<Rc<Thread>> {
        let core = self.core(thread.core);
        let mut queue = self.queue.borrow_mut();
        let flow = application.id.0 as usize;
        let ticket = match &mut *queue {
            Queue::FirstCome(lines) => {
                let Line { waiting, taken } = &lines[thread.core / self.line_cores];
                taken + waiting.len() as u64
            }
            Queue::WeightedFair(queue) => {
                let (_, begun) = core.serving.take().expect("a core at work serves a flow");
                queue.park(flow, begun, now)
            }
        };
        let mut fresh = None;
        thread.parked.set(true);
        let begins = core.parked.borrow().len() < self.spec.parked as usize;
        self.take_up(thread.core, &mut queue, now, begins, || {
            let free = core.threads.borrow().iter().find(|thread| thread.free.get()).cloned();
            free.unwrap_or_else(|| {
                let new = self.new_thread(thread.core);
                fresh = Some(new.clone());
                new
            })
        });
        core.parked.borrow_mut().push_back(Parked { thread: thread.clone(), flow, ticket });
        fresh
    }

    /// Starts the next handler on a core without one, in the order of the queue. Parked handlers can start, and with
    /// `begins` also waiting ones. `on` returns the thread for one that begins.
    fn take_up(
        &self,
        index: usize,
        queue: &mut Queue,
        now: Time,
        begins: bool,
        on: impl FnOnce() -> Rc<Thread>,
    ) {
        let (core, line) = (self.core(index), index / self.line_cores);
        let mut parked = core.parked.borrow_mut();
        if let Some(first) = queue.parked_first(line, &parked, now, begins) {
            let Parked { thread, flow, .. } = parked.remove(first).expect("just seen");
            if let Queue::WeightedFair(queue) = queue {
                queue.resume(flow, now);
                core.serving.set(Some((flow, now)));
            }
            thread.parked.set(false);
            thread.wake.notify_one();
        } else if let Some((flow, run)) = queue.pop(line, now) {
            core.serving.set(flow.map(|flow| (flow, now)));
            on().assign(run);
        } else {
            core.idle.set(true);
        }
    }
}

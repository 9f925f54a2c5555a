//! [`Thread`]: a thread on which code of the kernel or of a program runs.

use super::account::{Account, Group};
use super::caches::{Caches, Data, Misses, Page};
use super::cores::Core;
use super::queues::{Queues, Start, Woken};
use super::spec::ThreadsSpec;
use nicety_kernel::{Signal, Sim};
use nicety_types::{Duration, Path, Stage, Time};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

pub use super::queues::Placement;

/// The hardware threads of a host with an operating system. A clone is the same set of threads.
#[derive(Clone)]
pub struct Threads(Rc<Shared>);

struct Shared {
    sim: Sim,
    spec: ThreadsSpec,
    cores: Vec<Core>,
    caches: RefCell<Caches>,
    /// The cache lines of all CPUs' scheduler structures, for each core that looks at them.
    walked: Vec<Data>,
    queues: RefCell<Queues>,
    account: RefCell<Account>,
    /// The signal of each thread, which notifies the thread that it runs.
    signals: RefCell<Vec<Signal>>,
}

/// Number of cache lines of a CPU's scheduler structure that a look at the CPU's queue touches.
const WALKED_LINES: u64 = 2;

/// A piece of work of a thread. The thread keeps its CPU for the whole piece.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'d> {
    group: Group,
    instructions: u64,
    touched: &'d [&'d Data],
    pages: &'d [&'d Page],
    streamed: u64,
    stalled: Duration,
}

impl<'d> Piece<'d> {
    /// Returns a piece of `instructions` instructions for this function group.
    pub const fn new(group: Group, instructions: u64) -> Piece<'d> {
        Piece { group, instructions, touched: &[], pages: &[], streamed: 0, stalled: Duration::ZERO }
    }

    /// Returns the piece with work on this data.
    pub const fn touching(self, touched: &'d [&'d Data]) -> Piece<'d> {
        Piece { touched, ..self }
    }

    /// Returns the piece with accesses to these pages of memory. All other pages count as present in the TLB.
    pub const fn within(self, pages: &'d [&'d Page]) -> Piece<'d> {
        Piece { pages, ..self }
    }

    /// Returns the piece with a pass through `lines` uncached lines.
    pub const fn streaming(self, lines: u64) -> Piece<'d> {
        Piece { streamed: lines, ..self }
    }

    /// Returns the piece with a wait of the CPU for `stalled`, such as for a card's register. The core's other hardware
    /// threads continue during the wait.
    pub const fn stalled(self, stalled: Duration) -> Piece<'d> {
        Piece { stalled, ..self }
    }
}

impl Threads {
    /// Returns idle CPUs. The operating system uses the first `cpus` CPUs.
    ///
    /// # Panics
    /// If the processor has fewer CPUs, or more than 64 CPUs per core.
    pub fn new(sim: &Sim, spec: ThreadsSpec, cpus: usize) -> Threads {
        Threads(Rc::new(Shared {
            sim: sim.clone(),
            spec,
            cores: (0..spec.cores).map(|_| Core::new(spec.issue)).collect(),
            caches: RefCell::new(Caches::new(spec.cores, &spec.caches)),
            walked: (0..spec.cores).map(|_| Data::new(WALKED_LINES * cpus as u64)).collect(),
            queues: RefCell::new(Queues::new(&spec, cpus)),
            account: RefCell::default(),
            signals: RefCell::default(),
        }))
    }

    /// Returns a new thread. It gets a CPU when it runs its first piece.
    ///
    /// # Panics
    /// If `placement` names a CPU that is not in use.
    pub fn thread(&self, placement: Placement) -> Thread {
        let number = self.0.queues.borrow_mut().add(placement);
        let signal = Signal::new(&self.0.sim);
        self.0.signals.borrow_mut().push(signal.clone());
        let own = Rc::new(Own {
            number,
            signal,
            data: Data::new(self.0.spec.own_lines),
            since: Cell::new(Time::ZERO),
            busy: Cell::new(Duration::ZERO),
        });
        Thread { threads: self.clone(), own }
    }

    /// The specification of the processor and of the scheduler's costs.
    pub fn spec(&self) -> &ThreadsSpec {
        &self.0.spec
    }

    /// Number of CPUs in use.
    pub fn cpus(&self) -> usize {
        self.0.queues.borrow().cpus()
    }

    /// Returns the cost of all threads so far.
    pub fn account(&self) -> Account {
        *self.0.account.borrow()
    }

    fn notify(&self, thread: usize) {
        self.0.signals.borrow()[thread].notify_one();
    }

    /// Continues a CPU that its thread has left. The next thread runs on it. If there is none, the CPU looks at all
    /// other CPUs before it halts.
    fn pass_on(&self, next: Option<usize>) {
        if let Some(next) = next {
            return self.notify(next);
        }
        let shared = &self.0;
        let Some((cpu, era)) = shared.queues.borrow_mut().take_gone_idle() else { return };
        let core = shared.spec.core(cpu);
        let looks = Piece::new(Group::Kernel, shared.spec.idle_walk * self.others());
        let threads = self.clone();
        shared.sim.spawn(async move {
            let shared = &*threads.0;
            let (issuing, waiting, _) = shared.times(core, &looks.touching(&[&shared.walked[core]]));
            let (issuing, time) = shared.cores[core].begin(issuing, waiting);
            shared.sim.delay(Duration::from_ps(time)).await;
            drop(issuing);
            shared.queues.borrow_mut().halt(cpu, era);
        });
    }

    /// Number of CPUs in use, minus one.
    fn others(&self) -> u64 {
        self.cpus() as u64 - 1
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads on {} CPUs", self.cpus())
    }
}

struct Own {
    number: usize,
    /// Notified when the thread gets a CPU.
    signal: Signal,
    /// The cache lines of the thread's own stack and structure.
    data: Data,
    /// The instant at which the thread got its CPU.
    since: Cell<Time>,
    busy: Cell<Duration>,
}

/// A thread. A clone is the same thread. The code on the thread is one task, and only this task calls
/// [`run`](Thread::run) and [`sleep`](Thread::sleep).
#[derive(Clone)]
pub struct Thread {
    threads: Threads,
    own: Rc<Own>,
}

impl Thread {
    /// Does a piece of work as soon as the thread has a CPU. Returns after the piece, and after interrupts that arrived
    /// during the piece.
    pub async fn run(&self, piece: Piece<'_>, stage: Stage, path: &mut Path) {
        self.enter().await;
        path.advance(Stage::CPU_QUEUED, self.sim().now());
        self.work(piece).await;
        path.advance(stage, self.sim().now());
        self.yield_to_others().await;
    }

    /// Runs between two pieces. Takes a call of another CPU, and lets interrupts run. After a quantum, also lets a
    /// waiting thread run.
    async fn yield_to_others(&self) {
        let poked = self.threads.0.queues.borrow_mut().take_poke(self.own.number);
        if poked {
            self.work(Piece::new(Group::Kernel, self.threads.0.spec.cross_call_taken)).await;
        }
        let long_enough = self.sim().now().since(self.own.since.get()) >= self.threads.0.spec.quantum;
        let next = self.threads.0.queues.borrow_mut().preempt(self.own.number, long_enough);
        if let Some(next) = next {
            self.threads.notify(next);
            self.resume().await;
        }
    }

    /// Leaves the kernel after a system call. If a bound thread waits for the CPU, it gets the CPU.
    pub async fn leave_kernel(&self) {
        let left = self.threads.0.queues.borrow_mut().leave_kernel(self.own.number);
        let Some((next, called)) = left else { return };
        self.count(|account| account.cross_calls += u64::from(called));
        self.threads.notify(next);
        self.resume().await;
    }

    /// Holds the CPU during a wait for an external event, such as the answer of a card's register. No other thread runs
    /// on the CPU during the wait. The core's other hardware threads share the whole core. The time is accounted to a
    /// function group.
    pub async fn hold<T>(&self, group: Group, wait: impl Future<Output = T>) -> T {
        self.enter().await;
        let start = self.sim().now();
        let result = wait.await;
        let held = self.sim().now().since(start);
        self.own.busy.set(self.own.busy.get() + held);
        self.count(|account| account.group_mut(group).busy += held);
        self.yield_to_others().await;
        result
    }

    /// Gives up the CPU until another thread or an interrupt wakes this thread. Returns when the thread runs again.
    /// Returns at once if the thread was woken since its last sleep. The caller must check its condition again.
    pub async fn sleep(&self) {
        let shared = &self.threads.0;
        if shared.spec.walk > 0 && shared.queues.borrow_mut().leaves_idle(self.own.number) {
            let core = shared.spec.core(self.cpu().expect("it runs"));
            let looks = Piece::new(Group::Kernel, shared.spec.walk * self.threads.others());
            self.work(looks.touching(&[&shared.walked[core]])).await;
            self.yield_to_others().await;
        }
        let (sleeps, next) = shared.queues.borrow_mut().sleep(self.own.number);
        self.threads.pass_on(next);
        if sleeps {
            self.resume().await;
        }
    }

    /// Ends the code on this thread, which has completed or was dropped. The thread gives up its CPU, and is not woken
    /// any more. New code on the thread begins with a piece.
    pub fn exit(&self) {
        let next = self.threads.0.queues.borrow_mut().end(self.own.number);
        self.threads.pass_on(next);
    }

    /// Wakes another thread. If that thread sleeps, the calling thread spends time on the wake-up.
    pub async fn wake(&self, other: &Thread, path: &mut Path) {
        let spec = &self.threads.0.spec;
        if self.threads.0.queues.borrow().is_asleep(other.own.number) {
            self.count(|account| account.wakes += 1);
            self.run(Piece::new(Group::Kernel, spec.wake), Stage::WAKE, path).await;
        }
        let woken = {
            let mut queues = self.threads.0.queues.borrow_mut();
            let from = queues.cpu(self.own.number);
            queues.wake(other.own.number, from)
        };
        if matches!(woken, Woken::Runs { .. }) {
            self.threads.notify(other.own.number);
        }
        if matches!(woken, Woken::Runs { called: true } | Woken::Pokes) {
            self.count(|account| account.cross_calls += 1);
            self.run(Piece::new(Group::Kernel, spec.cross_call), Stage::WAKE, path).await;
        }
    }

    /// Wakes this thread without work of another thread, as an interrupt or a timer does.
    pub fn interrupt(&self) {
        let woken = self.threads.0.queues.borrow_mut().wake(self.own.number, None);
        if matches!(woken, Woken::Runs { .. }) {
            self.threads.notify(self.own.number);
        }
    }

    /// Whether the thread sleeps.
    pub fn is_asleep(&self) -> bool {
        self.threads.0.queues.borrow().is_asleep(self.own.number)
    }

    /// The CPU on which the thread runs, if it runs.
    pub fn cpu(&self) -> Option<usize> {
        self.threads.0.queues.borrow().cpu(self.own.number)
    }

    /// CPU time of the thread so far.
    pub fn busy(&self) -> Duration {
        self.own.busy.get()
    }

    /// The hardware threads to which this thread belongs.
    pub const fn threads(&self) -> &Threads {
        &self.threads
    }

    fn sim(&self) -> &Sim {
        &self.threads.0.sim
    }

    fn count(&self, change: impl FnOnce(&mut Account)) {
        change(&mut self.threads.0.account.borrow_mut());
    }

    /// Begins code on the thread if it has none, and waits for a CPU.
    async fn enter(&self) {
        self.threads.0.queues.borrow_mut().begin(self.own.number);
        self.resume().await;
    }

    /// Waits for a CPU, and does the scheduler's work before the thread's own work.
    async fn resume(&self) {
        if self.cpu().is_none() {
            self.own.signal.wait_until(|| self.cpu().is_some()).await;
        }
        let start = self.threads.0.queues.borrow_mut().take_start(self.own.number);
        let spec = &self.threads.0.spec;
        match start {
            None | Some(Start::Resumed) => {}
            Some(Start::Interrupt) => {
                self.count(|account| account.interrupts += 1);
                self.work(Piece::new(Group::Kernel, spec.interrupt)).await;
            }
            Some(Start::Switched { called, migrated }) => {
                self.own.since.set(self.sim().now());
                self.count(|account| {
                    account.context_switches += 1;
                    account.migrations += u64::from(migrated);
                });
                if called {
                    self.sim().delay(spec.cross_call_latency).await;
                    self.work(Piece::new(Group::Kernel, spec.cross_call_taken)).await;
                }
                self.work(Piece::new(Group::Kernel, spec.switch).touching(&[&self.own.data])).await;
            }
        }
    }

    /// Does a piece of work on the thread's CPU.
    async fn work(&self, piece: Piece<'_>) {
        let shared = &*self.threads.0;
        let core = shared.spec.core(self.cpu().expect("a thread works on a CPU"));
        let (issuing, waiting, missed) = shared.times(core, &piece);
        let (issuing, time) = shared.cores[core].begin(issuing, waiting);
        let time = Duration::from_ps(time);
        self.own.busy.set(self.own.busy.get() + time);
        self.count(|account| {
            let group = account.group_mut(piece.group);
            group.busy += time;
            group.instructions += piece.instructions;
            group.l1_misses += missed.lines.first;
            group.shared_cache_misses += missed.lines.second;
            group.tlb_misses += missed.pages;
            group.code_tlb_misses += missed.code_pages;
        });
        self.sim().delay(time).await;
        drop(issuing);
    }
}

/// The misses of a piece.
#[derive(Default)]
struct Missed {
    /// Missed lines of data.
    lines: Misses,
    /// Number of missed lines of code, in the core's instruction cache.
    code: u64,
    /// Number of missed pages of data, in the core's TLB.
    pages: u64,
    /// Number of missed pages of code, in the core's TLB for code.
    code_pages: u64,
}

impl Shared {
    /// Returns the issue time and the wait time of a piece, in picoseconds on an otherwise idle core, and its misses.
    /// The core's caches then hold the lines of the piece.
    fn times(&self, core: usize, piece: &Piece<'_>) -> (u64, u64, Missed) {
        let missed = self.misses(core, piece);
        let (caches, lines) = (&self.spec.caches, missed.lines);
        let loads = (lines.first - lines.second).saturating_mul(caches.second_latency.ps());
        let loads = loads.saturating_add(lines.second.saturating_mul(caches.memory_latency.ps()));
        let fetched = missed.code.saturating_mul(caches.second_latency.ps());
        let issuing = self.spec.clock.cycles(piece.instructions).ps();
        let between = issuing.saturating_mul(self.spec.cycles_per_instruction - 1);
        let walked = caches.tlb.map_or(0, |tlb| missed.pages.saturating_mul(tlb.miss.ps()));
        let code_walked = caches.code_tlb.map_or(0, |tlb| missed.code_pages.saturating_mul(tlb.miss.ps()));
        let waiting = [fetched, walked, code_walked, between, piece.stalled.ps()]
            .into_iter()
            .fold(loads / caches.overlap, u64::saturating_add);
        (issuing, waiting, missed)
    }

    /// Returns the piece's misses. The code of a piece that streams data is a loop of one or two lines, which are in
    /// the cache.
    fn misses(&self, core: usize, piece: &Piece<'_>) -> Missed {
        let mut caches = self.caches.borrow_mut();
        let mut lines = caches.stream(core, piece.streamed);
        for data in piece.touched {
            let misses = caches.touch(core, data);
            lines.first += misses.first;
            lines.second += misses.second;
        }
        let looped = piece.streamed > 0;
        Missed {
            lines,
            code: if looped { 0 } else { caches.fetch(core, piece.group, piece.instructions) },
            pages: piece.pages.iter().map(|page| caches.translate(core, page)).sum(),
            code_pages: match looped {
                true => caches.translate_code(core, piece.group, piece.instructions.min(1)),
                false => caches.translate_code(core, piece.group, piece.instructions),
            },
        }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Thread {}", self.own.number)
    }
}

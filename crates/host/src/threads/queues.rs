//! The assignment of threads to CPUs: a state machine without time.
//!
//! A ready thread continues on its last CPU if that CPU is idle. Otherwise it takes an idle CPU of the core with the
//! fewest threads. Without an idle CPU, it waits in the queue of its last CPU. A CPU without a thread takes a thread
//! from another CPU's queue. A bound thread waits only for its own CPU, and goes before all threads that are not bound.
//! An interrupt belongs to a CPU. It starts at the end of the current thread's piece, and the thread continues after
//! the interrupt.

use super::spec::ThreadsSpec;
use std::collections::VecDeque;

/// The CPUs on which a thread may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The thread may run on any CPU.
    Anywhere,
    /// The thread runs on this CPU, as a thread of the kernel. It goes before threads that may run anywhere.
    Bound(usize),
    /// The thread runs on this CPU, as an interrupt handler. It goes before all other threads.
    Interrupt(usize),
}

/// The event by which a thread starts to run on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// The thread continues after an interrupt.
    Resumed,
    /// The thread is an interrupt handler, and the interrupt has arrived.
    Interrupt,
    /// A context switch. `called` says whether it took a cross-call. `migrated` says whether the thread ran on another
    /// CPU before.
    Switched { called: bool, migrated: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The thread has no code to run.
    Idle,
    Asleep,
    /// The thread waits in a queue.
    Ready,
    /// An interrupt handler runs on the thread's CPU.
    Held,
    Running,
}

#[derive(Debug)]
struct State {
    placement: Placement,
    phase: Phase,
    /// Whether the thread was woken while it was not asleep. Its next sleep then returns at once.
    token: bool,
    /// The current or last CPU of the thread.
    cpu: Option<usize>,
    /// The event by which the thread started to run. The thread takes this value when it continues.
    start: Option<Start>,
    /// Whether the thread is about to sleep and looks for a waiting thread that can take over its CPU.
    leaving: bool,
}

#[derive(Debug, Default)]
struct Cpu {
    running: Option<usize>,
    /// The interrupted thread. It continues after the interrupt handlers.
    held: Option<usize>,
    interrupts: VecDeque<usize>,
    /// The queue of ready threads. Bound threads come first.
    ready: VecDeque<usize>,
    /// Whether another CPU has called this CPU to look at its queue. The call is taken at the end of a piece.
    poked: bool,
    /// Whether the CPU is halted. Another CPU that puts a thread on it must then call it.
    halted: bool,
    /// The number of times that the CPU got a thread or became idle.
    era: u64,
}

/// The effect of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// The thread was not asleep. Its next sleep returns at once.
    Already,
    /// The thread waits for a CPU.
    Waits,
    /// The thread waits for its CPU. The waking thread calls this CPU, so that it looks at its queue.
    Pokes,
    /// The thread runs on an idle CPU. `called` says that this CPU was halted, is not the waking thread's CPU, and so
    /// is called.
    Runs { called: bool },
}

/// CPUs and threads.
#[derive(Debug)]
pub(super) struct Queues {
    strands: usize,
    cpus: Vec<Cpu>,
    threads: Vec<State>,
    /// Bit mask of the idle CPUs of each core.
    idle: Vec<u64>,
    /// Number of threads in the queues of all CPUs.
    waiting: usize,
    /// Whether a CPU that becomes idle halts at once.
    halts: bool,
    /// The CPU that last became idle, until [`Queues::take_gone_idle`].
    gone_idle: Option<usize>,
}

const ALIVE: &str = "a thread has a CPU while it runs";

impl Queues {
    /// Returns idle CPUs. The operating system uses the first `enabled` CPUs.
    pub(super) fn new(spec: &ThreadsSpec, enabled: usize) -> Queues {
        assert!(spec.strands <= 64, "{} hardware threads a core", spec.strands);
        assert!((1..=spec.cpus()).contains(&enabled), "{enabled} of {} CPUs", spec.cpus());
        let mut idle = vec![0; spec.cores];
        for cpu in 0..enabled {
            idle[spec.core(cpu)] |= 1 << (cpu % spec.strands);
        }
        let cpus = (0..enabled).map(|_| Cpu { halted: true, ..Cpu::default() }).collect();
        let (halts, gone_idle) = (spec.idle_walk == 0, None);
        Queues { strands: spec.strands, cpus, threads: Vec::new(), idle, waiting: 0, halts, gone_idle }
    }

    /// Adds a thread without code, and returns its number.
    pub(super) fn add(&mut self, placement: Placement) -> usize {
        if let Placement::Bound(cpu) | Placement::Interrupt(cpu) = placement {
            assert!(cpu < self.cpus.len(), "CPU {cpu} of {}", self.cpus.len());
        }
        let (phase, token, leaving) = (Phase::Idle, false, false);
        let state = State { placement, phase, token, cpu: None, start: None, leaving };
        self.threads.push(state);
        self.threads.len() - 1
    }

    pub(super) fn cpus(&self) -> usize {
        self.cpus.len()
    }

    /// Returns the CPU of a running thread.
    pub(super) fn cpu(&self, thread: usize) -> Option<usize> {
        let state = &self.threads[thread];
        state.cpu.filter(|_| state.phase == Phase::Running)
    }

    /// Whether the thread sleeps, or looks for a thread that can take over its CPU before it sleeps.
    pub(super) fn is_asleep(&self, thread: usize) -> bool {
        let state = &self.threads[thread];
        state.phase == Phase::Asleep || state.leaving && !state.token
    }

    /// Whether a running thread would leave its CPU idle if it slept now. If so, marks the thread as leaving. Returns
    /// false for an interrupt handler.
    pub(super) fn leaves_idle(&mut self, thread: usize) -> bool {
        let Some(cpu) = self.cpu(thread) else { return false };
        let own = &self.cpus[cpu];
        let state = &mut self.threads[thread];
        state.leaving = !state.token
            && !matches!(state.placement, Placement::Interrupt(_))
            && self.waiting == 0
            && own.interrupts.is_empty();
        state.leaving
    }

    /// Takes the CPU that last became idle and has not halted yet, with its era.
    pub(super) fn take_gone_idle(&mut self) -> Option<(usize, u64)> {
        let cpu = self.gone_idle.take().filter(|&cpu| !self.halts && self.is_idle(cpu))?;
        Some((cpu, self.cpus[cpu].era))
    }

    /// Halts a CPU that became idle in this era, unless it has run a thread since then.
    pub(super) fn halt(&mut self, cpu: usize, era: u64) {
        let own = &mut self.cpus[cpu];
        own.halted |= own.era == era;
    }

    /// Starts code on a thread that has none: the thread gets a CPU, or waits for one.
    pub(super) fn begin(&mut self, thread: usize) {
        let state = &mut self.threads[thread];
        if state.phase == Phase::Idle {
            state.phase = Phase::Asleep;
            self.wake(thread, None);
        }
    }

    /// Ends the code on a thread, which may be in any state. Returns the next thread of its CPU.
    pub(super) fn end(&mut self, thread: usize) -> Option<usize> {
        let state = &mut self.threads[thread];
        let phase = std::mem::replace(&mut state.phase, Phase::Idle);
        state.token = false;
        state.leaving = false;
        state.start = None;
        match phase {
            Phase::Idle | Phase::Asleep => None,
            Phase::Running => self.next(self.threads[thread].cpu.expect(ALIVE)),
            Phase::Held => {
                let holding = self.cpus.iter_mut().find(|cpu| cpu.held == Some(thread));
                holding.expect("a thread that is held is so by a CPU").held = None;
                None
            }
            Phase::Ready => {
                for cpu in &mut self.cpus {
                    let before = cpu.ready.len();
                    cpu.ready.retain(|&waiting| waiting != thread);
                    self.waiting -= before - cpu.ready.len();
                    cpu.interrupts.retain(|&waiting| waiting != thread);
                }
                None
            }
        }
    }

    /// Takes the event by which a running thread started. The event is available once.
    pub(super) fn take_start(&mut self, thread: usize) -> Option<Start> {
        self.threads[thread].start.take()
    }

    /// Wakes a thread. `from` is the CPU of the waking thread, or `None` if no thread causes the wake-up.
    pub(super) fn wake(&mut self, thread: usize, from: Option<usize>) -> Woken {
        let state = &mut self.threads[thread];
        if state.phase != Phase::Asleep {
            state.token = true;
            return Woken::Already;
        }
        if let Placement::Interrupt(cpu) = state.placement {
            return self.interrupt(thread, cpu);
        }
        self.place(thread, from)
    }

    /// Gives a ready thread an idle CPU or a place in a queue.
    fn place(&mut self, thread: usize, from: Option<usize>) -> Woken {
        match self.idle_cpu(thread) {
            Some(cpu) => {
                let called = from.is_some_and(|from| from != cpu) && self.cpus[cpu].halted;
                self.run(thread, cpu, called);
                Woken::Runs { called }
            }
            None => {
                let cpu = self.queue_of(thread);
                self.threads[thread].phase = Phase::Ready;
                self.enqueue(thread, cpu);
                match self.pokes(thread, cpu, from) {
                    true => Woken::Pokes,
                    false => Woken::Waits,
                }
            }
        }
    }

    /// Adds a thread to a CPU's queue: a bound thread behind the last bound thread, any other thread at the end.
    fn enqueue(&mut self, thread: usize, cpu: usize) {
        let bound = self.is_bound(thread);
        let before = |&other: &usize| bound && !self.is_bound(other);
        let ready = &self.cpus[cpu].ready;
        let at = ready.iter().position(before).unwrap_or(ready.len());
        self.cpus[cpu].ready.insert(at, thread);
        self.waiting += 1;
    }

    /// Whether CPU `from` must call `cpu`. It must if a bound thread waits for `cpu` and the thread that runs there
    /// gives way to it. A call that `cpu` has not taken yet is not repeated.
    fn pokes(&mut self, thread: usize, cpu: usize, from: Option<usize>) -> bool {
        let gives_up = |running: usize| {
            self.threads[running].placement == Placement::Anywhere && !self.threads[running].leaving
        };
        let own = &self.cpus[cpu];
        let calls = self.is_bound(thread)
            && from.is_some_and(|from| from != cpu)
            && !own.poked
            && own.running.is_some_and(gives_up);
        self.cpus[cpu].poked |= calls;
        calls
    }

    /// Whether the CPU of a running thread was called to look at its queue since the last call of this function.
    pub(super) fn take_poke(&mut self, thread: usize) -> bool {
        self.cpu(thread).is_some_and(|cpu| std::mem::take(&mut self.cpus[cpu].poked))
    }

    fn is_bound(&self, thread: usize) -> bool {
        matches!(self.threads[thread].placement, Placement::Bound(_))
    }

    fn interrupt(&mut self, thread: usize, cpu: usize) -> Woken {
        if self.is_idle(cpu) {
            self.run(thread, cpu, false);
            return Woken::Runs { called: false };
        }
        self.threads[thread].phase = Phase::Ready;
        self.cpus[cpu].interrupts.push_back(thread);
        Woken::Waits
    }

    /// Puts the thread to sleep, unless it was woken since its last sleep. Returns whether it sleeps, and the next
    /// thread of its CPU.
    pub(super) fn sleep(&mut self, thread: usize) -> (bool, Option<usize>) {
        let state = &mut self.threads[thread];
        state.leaving = false;
        if std::mem::take(&mut state.token) {
            return (false, None);
        }
        let running = state.phase == Phase::Running;
        state.phase = Phase::Asleep;
        if !running {
            return (true, None);
        }
        let cpu = state.cpu.expect(ALIVE);
        (true, self.next(cpu))
    }

    /// Called at the end of a piece. Gives the CPU to an interrupt handler. If the thread had the CPU for long enough,
    /// gives it to a waiting thread. Returns the next thread.
    pub(super) fn preempt(&mut self, thread: usize, long_enough: bool) -> Option<usize> {
        let state = &self.threads[thread];
        if matches!(state.placement, Placement::Interrupt(_)) {
            return None;
        }
        let cpu = state.cpu.expect(ALIVE);
        if !self.cpus[cpu].interrupts.is_empty() {
            self.threads[thread].phase = Phase::Held;
            self.cpus[cpu].held = Some(thread);
            return self.next(cpu);
        }
        let &first = self.cpus[cpu].ready.front()?;
        // A thread that is not bound waits until all bound threads of the CPU sleep.
        if !long_enough || self.is_bound(thread) && !self.is_bound(first) {
            return None;
        }
        let next = self.next(cpu);
        self.place(thread, None);
        next
    }

    /// When a thread leaves the kernel, gives its CPU to a bound thread that waits for this CPU. Returns the bound
    /// thread. Also returns whether the leaving thread continues on another CPU that must be called.
    pub(super) fn leave_kernel(&mut self, thread: usize) -> Option<(usize, bool)> {
        let cpu = self.cpu(thread)?;
        let &first = self.cpus[cpu].ready.front()?;
        let anywhere = self.threads[thread].placement == Placement::Anywhere;
        if !anywhere || !self.is_bound(first) || !self.cpus[cpu].interrupts.is_empty() {
            return None;
        }
        let next = self.next(cpu)?;
        let called = matches!(self.place(thread, Some(cpu)), Woken::Runs { called: true });
        Some((next, called))
    }

    /// Returns the next thread of a CPU, after its previous thread has left it.
    fn next(&mut self, cpu: usize) -> Option<usize> {
        self.cpus[cpu].running = None;
        self.set_idle(cpu, true);
        if let Some(interrupt) = self.cpus[cpu].interrupts.pop_front() {
            self.run(interrupt, cpu, false);
            return Some(interrupt);
        }
        if let Some(held) = self.cpus[cpu].held.take() {
            self.run(held, cpu, false);
            self.threads[held].start = Some(Start::Resumed);
            return Some(held);
        }
        let Some(ready) = self.cpus[cpu].ready.pop_front().or_else(|| self.steal(cpu)) else {
            self.cpus[cpu].halted = self.halts;
            self.cpus[cpu].era += 1;
            self.gone_idle = Some(cpu);
            return None;
        };
        self.waiting -= 1;
        self.run(ready, cpu, false);
        Some(ready)
    }

    /// Takes a thread that waits for another CPU and may run on `cpu`. The search goes through the CPUs in cyclic
    /// order.
    fn steal(&mut self, cpu: usize) -> Option<usize> {
        if self.waiting == 0 {
            return None;
        }
        let all = self.cpus.len();
        (1..all).map(|step| (cpu + step) % all).find_map(|other| {
            let threads = &self.threads;
            let ready = &mut self.cpus[other].ready;
            let at = ready.iter().position(|&thread| threads[thread].placement == Placement::Anywhere)?;
            ready.remove(at)
        })
    }

    fn run(&mut self, thread: usize, cpu: usize, called: bool) {
        let state = &mut self.threads[thread];
        let migrated = state.cpu.is_some_and(|last| last != cpu);
        state.start = Some(match state.placement {
            Placement::Interrupt(_) => Start::Interrupt,
            _ => Start::Switched { called, migrated },
        });
        state.phase = Phase::Running;
        state.cpu = Some(cpu);
        self.cpus[cpu].running = Some(thread);
        self.cpus[cpu].era += 1;
        self.set_idle(cpu, false);
    }

    /// Returns the best idle CPU for a thread: its last CPU, or else a CPU of the core with the most idle CPUs.
    fn idle_cpu(&self, thread: usize) -> Option<usize> {
        let state = &self.threads[thread];
        if let Placement::Bound(cpu) = state.placement {
            return Some(cpu).filter(|&cpu| self.is_idle(cpu));
        }
        if let Some(last) = state.cpu.filter(|&cpu| self.is_idle(cpu)) {
            return Some(last);
        }
        let most = |(core, idle): (usize, &u64)| (idle.count_ones(), std::cmp::Reverse(core));
        let (core, idle) = self.idle.iter().enumerate().max_by_key(|&(core, idle)| most((core, idle)))?;
        (*idle != 0).then(|| core * self.strands + idle.trailing_zeros() as usize)
    }

    /// Returns the CPU with the queue in which a thread waits: its last CPU, or the CPU with the shortest queue.
    fn queue_of(&self, thread: usize) -> usize {
        let state = &self.threads[thread];
        if let Placement::Bound(cpu) = state.placement {
            return cpu;
        }
        let shortest = || (0..self.cpus.len()).min_by_key(|&cpu| self.cpus[cpu].ready.len());
        state.cpu.or_else(shortest).expect("there is a CPU")
    }

    fn is_idle(&self, cpu: usize) -> bool {
        self.idle[cpu / self.strands] & (1 << (cpu % self.strands)) != 0
    }

    fn set_idle(&mut self, cpu: usize, idle: bool) {
        let bit = 1 << (cpu % self.strands);
        let word = &mut self.idle[cpu / self.strands];
        *word = if idle { *word | bit } else { *word & !bit };
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::SPEC;
    use super::*;
    use proptest::prelude::*;

    impl Queues {
        /// Checks the invariants that hold between two calls.
        fn check(&self) {
            for (number, cpu) in self.cpus.iter().enumerate() {
                assert_eq!(self.is_idle(number), cpu.running.is_none());
                let free = cpu.running.is_none();
                assert!(
                    !free || (cpu.interrupts.is_empty() && cpu.held.is_none() && cpu.ready.is_empty()),
                    "{self:?}"
                );
                let waiting = cpu.interrupts.iter().chain(&cpu.ready);
                assert!(waiting.map(|&thread| self.threads[thread].phase).all(|phase| phase == Phase::Ready));
                if let Some(running) = cpu.running {
                    assert_eq!(
                        (self.cpu(running), self.threads[running].phase),
                        (Some(number), Phase::Running)
                    );
                }
                assert!(cpu.held.is_none_or(|held| self.threads[held].phase == Phase::Held));
            }
            let places = |cpu: &Cpu| {
                let one = |thread: Option<usize>| usize::from(thread.is_some());
                one(cpu.running) + one(cpu.held) + cpu.interrupts.len() + cpu.ready.len()
            };
            let is_awake = |state: &&State| !matches!(state.phase, Phase::Asleep | Phase::Idle);
            let awake = self.threads.iter().filter(is_awake).count();
            assert_eq!(
                self.cpus.iter().map(places).sum::<usize>(),
                awake,
                "each thread is in one place: {self:?}"
            );
            assert_eq!(self.cpus.iter().map(|cpu| cpu.ready.len()).sum::<usize>(), self.waiting);
            let anywhere = |&thread: &usize| self.threads[thread].placement == Placement::Anywhere;
            let idle = self.cpus.iter().any(|cpu| cpu.running.is_none());
            assert!(
                !idle || !self.cpus.iter().flat_map(|cpu| &cpu.ready).any(anywhere),
                "one waits while a CPU idles"
            );
            for state in &self.threads {
                let bound = match state.placement {
                    Placement::Anywhere => None,
                    Placement::Bound(cpu) | Placement::Interrupt(cpu) => Some(cpu),
                };
                assert!(bound.is_none() || state.cpu.is_none() || state.cpu == bound);
            }
        }
    }

    proptest! {
        #[test]
        fn every_thread_is_in_one_place_and_no_cpu_idles_while_one_waits(
            cpus in 1usize..=4,
            placements in prop::collection::vec((0u8..3, 0usize..4), 1..12),
            calls in prop::collection::vec((0u8..6, 0usize..12), 0..200),
        ) {
            let mut queues = Queues::new(&SPEC, cpus);
            for (kind, cpu) in placements {
                queues.add(match kind {
                    0 => Placement::Bound(cpu % cpus),
                    1 => Placement::Interrupt(cpu % cpus),
                    _ => Placement::Anywhere,
                });
            }
            let all = queues.threads.len();
            for (call, which) in calls {
                let thread = which % all;
                let runs = queues.cpu(thread);
                match (call, runs) {
                    (0, Some(_)) => drop(queues.sleep(thread)),
                    (1, Some(_)) => drop(queues.preempt(thread, true)),
                    (2, Some(_)) => drop(queues.preempt(thread, false)),
                    (3, Some(_)) | (4, _) => drop(queues.end(thread)),
                    (5, Some(_)) => drop(queues.leave_kernel(thread)),
                    (0, None) => queues.begin(thread),
                    _ => drop(queues.wake(thread, Some(0).filter(|_| which % 2 == 0))),
                }
                queues.check();
            }
        }
    }
}

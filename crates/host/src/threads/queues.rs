//! The assignment of threads to CPUs: a state machine without time.
//!
//! A ready thread continues on its last CPU if that is idle, else on an idle CPU of the core with the fewest threads.
//! Otherwise it waits in the queue of its last CPU. A CPU without a thread takes a thread from another CPU's queue. A
//! bound thread waits for its own CPU only, before all threads that are not bound. An interrupt belongs to a CPU: it
//! starts at the end of the current thread's piece, and the thread continues afterwards.

use super::spec::ThreadsSpec;
use std::collections::VecDeque;

/// The CPUs on which a thread may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On any CPU.
    Anywhere,
    /// On this CPU, as a thread of the kernel, before threads that may run anywhere.
    Bound(usize),
    /// On this CPU, as an interrupt handler, before all other threads.
    Interrupt(usize),
}

/// The way in which a thread starts to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// After an interrupt: nothing has changed.
    Resumed,
    /// As an interrupt.
    Interrupt,
    /// By a context switch: whether with a cross-call, and whether the thread ran elsewhere before.
    Switched { called: bool, migrated: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No code runs on the thread.
    Idle,
    Asleep,
    /// In a queue.
    Ready,
    /// Interrupted.
    Held,
    Running,
}

#[derive(Debug)]
struct State {
    placement: Placement,
    phase: Phase,
    /// Woken while it was not asleep: its next sleep returns at once.
    token: bool,
    /// Its current or last CPU.
    cpu: Option<usize>,
    /// The way in which it started to run, until the thread takes this value.
    start: Option<Start>,
    /// Before it sleeps, it looks for a thread that can take over its CPU.
    leaving: bool,
}

#[derive(Debug, Default)]
struct Cpu {
    running: Option<usize>,
    /// The interrupted thread, which continues after the interrupts.
    held: Option<usize>,
    interrupts: VecDeque<usize>,
    /// Bound threads come first.
    ready: VecDeque<usize>,
    /// Called by another CPU to look at its queue. The call is taken at the end of a piece.
    poked: bool,
    /// The CPU is halted: another CPU must call it to run a thread on it.
    halted: bool,
    /// The number of times that it got a thread or was left idle.
    era: u64,
}

/// The effect of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// It was not asleep: its next sleep returns at once.
    Already,
    /// It waits for a CPU.
    Waits,
    /// It waits for its CPU, and the waking thread calls this CPU to look at its queue.
    Pokes,
    /// It runs on an idle CPU. `called` says that this CPU was halted and is not the waking thread's, so it is called.
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
    /// Threads in the queues of all CPUs.
    waiting: usize,
    /// Whether a CPU that is left idle halts at once.
    halts: bool,
    /// The CPU that was left idle last, until it is taken.
    gone_idle: Option<usize>,
}

const ALIVE: &str = "a thread has a CPU while it runs";

impl Queues {
    /// Returns idle CPUs. The operating system uses the first `enabled`.
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

    /// Whether it sleeps, or looks for a thread that can take over its CPU before it sleeps.
    pub(super) fn is_asleep(&self, thread: usize) -> bool {
        let state = &self.threads[thread];
        state.phase == Phase::Asleep || state.leaving && !state.token
    }

    /// Whether a running thread that is no interrupt leaves its CPU idle if it sleeps now. If so, marks it as leaving.
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

    /// Takes the CPU that was left idle and does not halt yet, with its era.
    pub(super) fn take_gone_idle(&mut self) -> Option<(usize, u64)> {
        let cpu = self.gone_idle.take().filter(|&cpu| !self.halts && self.is_idle(cpu))?;
        Some((cpu, self.cpus[cpu].era))
    }

    /// Halts a CPU that was left idle in this era, unless it runs a thread or did meanwhile.
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

    /// Ends the code on a thread, or abandons it in any state. Returns the next thread of its CPU.
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

    /// Takes the way in which a running thread started. It is available once.
    pub(super) fn take_start(&mut self, thread: usize) -> Option<Start> {
        self.threads[thread].start.take()
    }

    /// Wakes a thread. `from` is the CPU of the waking thread, or `None` if no thread wakes it.
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

    /// Whether CPU `from` calls `cpu`: a bound thread waits for `cpu`, and the thread that runs there gives way to it. A
    /// call that has not been noticed is not repeated.
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

    /// Whether the CPU of a running thread was called to look at its queue since the last look.
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

    /// Puts the thread to sleep unless it was woken meanwhile. Returns whether it sleeps, and the next thread of its
    /// CPU.
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

    /// At the end of a piece, gives the CPU to an interrupt or, if the thread had it for long enough, to a waiting
    /// thread. Returns the next thread.
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
        // A thread that is not bound waits until the bound ones sleep.
        if !long_enough || self.is_bound(thread) && !self.is_bound(first) {
            return None;
        }
        let next = self.next(cpu);
        self.place(thread, None);
        next
    }

    /// When a thread leaves the kernel, gives its CPU to a bound thread that waits for this CPU. Returns the bound thread,
    /// and whether the leaving thread continues on another CPU that must be called.
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

    /// Returns the next thread of a CPU that its thread has left.
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

    /// Takes a thread that waits for another CPU and may run on this one, from the next CPU in cyclic order.
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

    /// Returns the best idle CPU for a thread: its last CPU, or a CPU of the core with the most idle CPUs.
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

    /// Returns the CPU with the queue for a thread without an idle CPU: its last CPU, or the CPU with the shortest queue.
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
        /// Checks the invariants between two calls.
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

//! A run of a handler, from its start to its result.
//!
//! | part | file |
//! |---|---|
//! | words of memory that processors share | `shared.rs` |
//! | output of handlers | `printf.rs` |
//! | profiles of programs | `profile.rs` |
//! | the commands that every card has | `own_memory.rs` |
//! | turns of accesses inside a slice | `ahead.rs` |
//! | the ends of handlers that are stopped | `ends.rs` |
//! | an observer of every instruction and command | `observe.rs` |
//! | the execution of a handler, slice after slice | `execute.rs` |
//! | handlers of frames, which have no messages | `frames.rs` |

mod ahead;
mod ends;
mod execute;
pub mod frames;
pub mod observe;
mod own_memory;
pub mod printf;
pub(crate) mod profile;
pub mod shared;

use crate::Processors;
use crate::hpus::{Thread, ThreadState};
use crate::programs::attachments::Attachment;
use crate::programs::program::Kind;
use crate::pspin::command_unit::Issued;
use crate::pspin::ports::{Ports, Settling};
use crate::resources;
use crate::running::{RunMemory, Running};
use crate::stages;
use nicety_hpu::Origin;
use nicety_hpu::profile::{Cause, Parts};
use nicety_types::{Duration, HandlerRun, Level, MessageId, Path, Time};
use std::rc::Rc;

/// A handler that starts.
pub struct Starting {
    /// The kind of the handler.
    pub kind: Kind,
    /// Index of its message among the messages in progress.
    pub place: usize,
    /// Its packet's offset in the message.
    pub packet: Option<u64>,
    /// The message.
    pub message: MessageId,
    /// The attached handlers.
    pub attachment: Rc<Attachment>,
    /// Its memory, without HPU memory.
    pub memory: RunMemory,
    /// The path up to the time at which it was ready.
    pub path: Path,
}

impl Processors {
    /// Starts a handler on a thread.
    #[inline]
    pub fn start(&self, thread: &Rc<Thread>, starting: Starting) -> Running {
        let Starting { kind, place, packet, message, attachment, memory, mut path } = starting;
        let now = self.sim.now();
        self.queued(thread.core, message, &mut path);
        thread.state.borrow_mut().begin(attachment.application());
        Running {
            thread: thread.clone(),
            kind,
            place,
            packet,
            message,
            attachment,
            memory,
            edges: self.levels.edges(thread.core, now),
            since: now,
            path,
            busy: 0,
            number: self.hpus.next_run(),
            atomic_commands: 0,
            shared_accesses: 0,
            memory_waits: 0,
            fetch_waits: 0,
            causes: Parts::new(),
            issued: self.hpu.pspin.map(|_| Rc::new(Issued::new(&self.sim))),
        }
    }

    /// Notes that a handler's instructions have ended, and takes it off its core.
    pub fn end(&self, running: &mut Running) {
        self.contention.goes_on(running.number);
        running.path.advance(stages::HANDLER, self.sim.now());
        self.leave_core(running);
    }

    /// Continues a path that waited for this core.
    pub fn queued(&self, core: usize, message: MessageId, path: &mut Path) {
        let now = self.sim.now();
        if now > path.at() {
            match &*self.hpus.core(core).last.borrow() {
                // A handler of the same message occupied the core. Its path is the critical one.
                Some((last, of)) if *last == message && of.at() == now => path.clone_from(of),
                _ => path.advance(stages::HANDLER_QUEUED, now),
            }
        }
    }

    /// Takes a handler off its core, for now or for good. Its path ends now.
    pub fn leave_core(&self, running: &Running) {
        let core = running.thread.core;
        self.hpus.core(core).last.replace(Some((running.message, running.path.clone())));
        let (resource, message) = (resources::HPU.numbered(core as u32), Some(running.message));
        self.recorder.slice(resource, running.since, self.sim.now(), message, running.kind.name());
    }

    /// Records a run, and reports it to the watch.
    pub fn record_run(
        &self,
        running: &Running,
        [ready, start]: [Time; 2],
        parked: Duration,
        outcome: &'static str,
    ) {
        let end = self.sim.now();
        let watch = self.watch.get();
        if watch.is_some() || self.recorder.keeps(Level::Packets) {
            let run = HandlerRun {
                hpu: running.thread.core as u32,
                kind: running.kind.word(),
                message: running.message,
                offset: running.packet,
                ready,
                start,
                end,
                parked,
                cycles: running.edges.until(end),
                instructions: running.thread.state.borrow().context.instret(),
                outcome,
            };
            if let Some(watch) = watch {
                watch.ran(&run);
            }
            self.recorder.handler_run(run);
        }
    }

    /// Makes a handler wait for DMA that delays accesses of its last slice and was not known in the slice.
    async fn settle(&self, thread: &Thread, running: &Running, ports: &Ports) {
        let mut settling = Settling::default();
        loop {
            let cycle = {
                let state = thread.state.borrow();
                if state.accesses.is_empty() {
                    return;
                }
                state.context.cycle() + settling.waited
            };
            self.sim.pass_until(running.edges.at(cycle)).await;
            let ThreadState { context, accesses, profile, .. } = &mut *thread.state.borrow_mut();
            let waits = |Origin { pc, path }, cycles| {
                if let Some(profile) = profile {
                    profile.wait_at(path, pc, Cause::DmaBank, cycles);
                }
            };
            if settling.settle(ports, running.edges.card(), cycle, accesses, waits) {
                context.stall(settling.waited);
                accesses.clear();
                return;
            }
        }
    }
}

//! A debugging session: an observer that stops the simulation where the debugger wants, and serves its socket there.
//!
//! A session may take several runs of the same simulation. Each is the same to the last instruction, so that a step
//! back is a run up to the instruction before. Changes by the debugger are made again at their instructions.

use crate::breaks::Watchpoint;
use crate::connection::Wire;
use crate::machine::{Edit, Machine, Resume};
use crate::packets::PACKET_BYTES;
use crate::target::{is_valid, tid};
use gdbstub::common::Signal;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::stub::{DisconnectReason, GdbStub, MultiThreadStopReason};
use gdbstub::target::ext::base::reverse_exec::ReplayLogPosition;
use nicety_hpu::{AddressSpace, Context, Image, Trap, TrapKind};
use nicety_nic_nfp::observe::Outer;
use nicety_types::Time;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

type Stub = GdbStubStateMachine<'static, Machine, Wire>;
type Reason = MultiThreadStopReason<u64>;

/// Instructions between two looks at the socket for an interrupt.
const LOOK_EVERY: u64 = 4096;

/// The end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The debugger saw the end of the run, or detached: the run is complete.
    Complete,
    /// The debugger ended the run.
    Killed,
    /// The connection was lost, for this reason. The run is complete.
    Lost(String),
    /// The run was interrupted.
    Interrupted,
}

/// The next run.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Up to an instruction, with the reason to stop there.
    To(u64, Reason),
    /// Up to an instruction, to find the last stop before it.
    Search(u64),
    /// Up to an instruction, and on from there.
    Again(u64),
    /// None.
    Nothing,
}

/// The attitude towards instructions.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Look for the first instruction. No debugger has connected yet.
    Probing,
    /// The debugger's stops count.
    Live,
    /// Run up to an instruction.
    Replaying(u64, Reason),
    /// Look for the last stop before an instruction.
    Searching(u64, Option<(u64, Reason)>),
    /// Run up to an instruction that was passed while another core was in a step. From there on, stops count.
    Returning(u64),
    /// The run is being abandoned.
    Leaving(Next),
    /// There is no debugger any more.
    Free,
}

/// An instruction before it is executed.
pub(crate) struct Step<'s, 'm> {
    /// The core of its handler, or the number of its context.
    pub(crate) core: usize,
    pub(crate) time: Time,
    pub(crate) image: &'s Image,
    pub(crate) context: &'s mut Context,
    pub(crate) space: &'s mut AddressSpace<'m>,
    /// The memories outside a microengine.
    pub(crate) outer: Option<&'s Outer>,
}

/// A debugging session.
pub struct Session {
    pub(crate) inner: RefCell<Inner>,
}

pub(crate) struct Inner {
    pub(crate) machine: Machine,
    /// The connection, until the first stop.
    wire: Option<Wire>,
    stub: Option<Stub>,
    mode: Mode,
    /// The number of the next instruction in the run.
    index: u64,
    edits: BTreeMap<u64, Edit>,
    /// Ends the present run when set.
    stop: Arc<AtomicBool>,
    interrupted: Box<dyn Fn() -> bool>,
    end: End,
    stops: u64,
    /// The first instruction with a stop that was passed while another core was in a step.
    pub(crate) passed: Option<u64>,
    /// Whether the handler or process that alone is to go on has ended.
    pub(crate) step_ended: bool,
    /// The functions of the program of processes that is debugged: those of the first process.
    pub(crate) functions: Option<String>,
    pub(crate) first: Option<String>,
    /// The number of processes or handlers of the debugged program in the present run.
    pub(crate) runs: u64,
}

impl Session {
    /// Returns a session without a debugger. Its first run ends at the first instruction of a handler, so that a debugger
    /// then gets its answers at once. `interrupted` says whether the user wants to end the run.
    pub fn new(interrupted: Box<dyn Fn() -> bool>) -> Session {
        Session {
            inner: RefCell::new(Inner {
                machine: Machine::default(),
                wire: None,
                stub: None,
                mode: Mode::Probing,
                index: 0,
                edits: BTreeMap::new(),
                stop: Arc::default(),
                interrupted,
                end: End::Complete,
                stops: 0,
                passed: None,
                step_ended: false,
                functions: None,
                first: None,
                runs: 0,
            }),
        }
    }

    /// Takes the connection of a debugger, after the first run. The next run stops at the first instruction.
    pub fn connect(&self, wire: Wire) {
        self.inner.borrow_mut().wire = Some(wire);
    }

    /// Prepares for a run, which ends early when `stop` is set.
    pub fn begins(&self, stop: Arc<AtomicBool>) {
        let inner = &mut *self.inner.borrow_mut();
        (inner.index, inner.runs, inner.stop) = (0, 0, stop);
        inner.machine.cores.clear();
        inner.step_ended = false;
        inner.mode = match inner.mode {
            Mode::Leaving(Next::To(index, reason)) => Mode::Replaying(index, reason),
            Mode::Leaving(Next::Search(before)) => Mode::Searching(before, None),
            Mode::Leaving(Next::Again(index)) => Mode::Returning(index),
            mode => mode,
        };
    }

    /// Whether the simulation must be run again. It must after the first run if a handler ran, and after a way back in time. A
    /// deferred stop that no later instruction has reported needs another run, too.
    pub fn repeats(&self) -> bool {
        let inner = &mut *self.inner.borrow_mut();
        inner.return_to_deferred();
        matches!(inner.mode, Mode::Leaving(Next::To(..) | Next::Search(_) | Next::Again(_)))
    }

    /// Whether the present run is being abandoned.
    pub fn leaves(&self) -> bool {
        matches!(self.inner.borrow().mode, Mode::Leaving(_))
    }

    /// The name of the function of the first process, in all runs.
    pub fn first(&self) -> Option<String> {
        self.inner.borrow().first.clone()
    }

    /// The number of handlers or processes that have begun in the present run, of the debugged program.
    pub fn runs(&self) -> u64 {
        self.inner.borrow().runs
    }

    /// Reports the end of the last run to the debugger, with an exit status. Returns the end of the session, and the
    /// number of its stops.
    pub fn finish(&self, status: u8) -> (End, u64) {
        let inner = &mut *self.inner.borrow_mut();
        if let Some(GdbStubStateMachine::Running(stub)) = inner.stub.take() {
            // The debugger may have gone in the meantime, which no longer matters.
            let _ = stub.report_stop(&mut inner.machine, Reason::Exited(status));
        }
        (inner.end.clone(), inner.stops)
    }
}

impl Inner {
    pub(crate) fn instruction(&mut self, at: &mut Step<'_, '_>) {
        if matches!(self.mode, Mode::Free | Mode::Leaving(_)) {
            return;
        }
        if matches!(self.mode, Mode::Probing) {
            let reason = Reason::SignalWithThread { tid: tid(at.core), signal: Signal::SIGTRAP };
            return self.leave(Next::To(0, reason));
        }
        let index = self.index;
        self.index += 1;
        if let Some(edit) = self.edits.get(&index) {
            edit.apply(at.context, at.space, at.outer);
        }
        let watched = self.note(index, at);
        let pc = at.context.pc();
        let reason = match &mut self.mode {
            Mode::Searching(before, found) if index < *before => {
                let here = tid(at.core);
                // Back in time, a stop is before the access.
                let hit = self.machine.cores[&at.core].hit;
                let stop = match hit {
                    Some(hit) => Some(Reason::Watch { tid: here, kind: hit.kind, addr: hit.address }),
                    None => self.machine.breaks.stops(pc).then_some(Reason::SwBreak(here)),
                };
                *found = stop.map(|reason| (index, reason)).or(*found);
                None
            }
            Mode::Searching(_, found) => {
                let begin = Reason::ReplayLog { tid: None, pos: ReplayLogPosition::Begin };
                let (index, reason) = found.unwrap_or((0, begin));
                self.leave(Next::To(index, reason));
                None
            }
            Mode::Replaying(to, reason) if index == *to => Some(*reason),
            Mode::Replaying(..) => None,
            Mode::Returning(to) if index < *to => None,
            _ => self.reason(index, at.core, pc, watched),
        };
        if let Some(reason) = reason {
            self.mode = Mode::Live;
            self.step_ended = false;
            self.stop_at(index, at, reason);
        }
    }

    /// Notes an instruction of a core. Returns the watchpoint that the instruction before has hit.
    fn note(&mut self, index: u64, at: &Step<'_, '_>) -> Option<Watchpoint> {
        let beside = self.machine.alone().is_some_and(|alone| alone != at.core);
        let breaks = &self.machine.breaks;
        let access = if breaks.is_watching(beside) { at.context.next_access(at.image) } else { None };
        let hit = access.and_then(|access| breaks.hit(&access, beside));
        let view = self.machine.cores.get_mut(&at.core).expect("its handler has begun");
        view.before = view.last.replace(index);
        std::mem::replace(&mut view.hit, hit)
    }

    /// Returns the reason to stop before this instruction, if there is one.
    fn reason(&mut self, index: u64, core: usize, pc: u32, watched: Option<Watchpoint>) -> Option<Reason> {
        let returned = matches!(self.mode, Mode::Returning(_));
        self.mode = Mode::Live;
        let alone = self.machine.alone();
        match alone {
            Some(alone) if alone != core => {
                self.defer(index, core, pc, watched);
                if returned {
                    // The step has had no end in the run before, so that it ends at the deferred stop.
                    return Some(Reason::SignalWithThread { tid: tid(alone), signal: Signal::SIGTRAP });
                }
            }
            _ => {
                if let Some(reason) = self.reason_of_core(core, pc, watched) {
                    return Some(reason);
                }
            }
        }
        let tid = tid(alone.unwrap_or(core));
        if std::mem::take(&mut self.step_ended) {
            return Some(Reason::SignalWithThread { tid, signal: Signal::SIGTRAP });
        }
        let interrupted = index.is_multiple_of(LOOK_EVERY) && self.is_interrupted();
        interrupted.then_some(Reason::SignalWithThread { tid, signal: Signal::SIGINT })
    }

    /// Returns the reason of a core that may stop.
    fn reason_of_core(&mut self, core: usize, pc: u32, watched: Option<Watchpoint>) -> Option<Reason> {
        let here = tid(core);
        let deferred = self.machine.cores.get_mut(&core).and_then(|view| view.deferred.take());
        let deferred = deferred.map(|(_, hit)| hit).filter(|hit| self.machine.breaks.watches(hit, false));
        if let Some(hit) = watched.or(deferred) {
            return Some(Reason::Watch { tid: here, kind: hit.kind, addr: hit.address });
        }
        let stepping = match self.machine.resume {
            Resume::Step { core, range } => Some((core, range)),
            _ => None,
        };
        if let Some((_, range)) = stepping.filter(|(of, _)| *of == core)
            && range.is_none_or(|(start, end)| !(start..end).contains(&u64::from(pc)))
        {
            return Some(Reason::SignalWithThread { tid: here, signal: Signal::SIGTRAP });
        }
        let beside = stepping.is_some_and(|(of, _)| of != core);
        let breaks = &self.machine.breaks;
        (breaks.stops(pc) || beside && breaks.holds(pc)).then_some(Reason::SwBreak(here))
    }

    /// Defers the stop of a core beside the one that alone is to go on. GDB ends with an internal error where another
    /// thread stops. The core's next instruction reports a watchpoint. A breakpoint must stop before its instruction,
    /// which takes another run.
    fn defer(&mut self, index: u64, core: usize, pc: u32, watched: Option<Watchpoint>) {
        if self.machine.breaks.holds(pc) {
            self.passed.get_or_insert(index);
        }
        let view = self.machine.cores.get_mut(&core).expect("its handler has begun");
        view.deferred = view.deferred.or(watched.map(|hit| (index, hit)));
    }

    /// Returns the first instruction with a deferred stop, if a core has passed one.
    fn take_passed(&mut self) -> Option<u64> {
        let passed = self.passed.take()?;
        let watched = self.machine.cores.values().filter_map(|view| view.deferred);
        Some(watched.map(|(index, _)| index).fold(passed, u64::min))
    }

    /// The run has ended. Returns to a deferred stop in another run if no instruction has reported it.
    fn return_to_deferred(&mut self) {
        let waits = matches!(self.stub, Some(GdbStubStateMachine::Running(_)));
        if !waits || !matches!(self.mode, Mode::Live) {
            return;
        }
        let breaks = &self.machine.breaks;
        let beside = self.machine.alone().is_some();
        let watched = self.machine.cores.values().filter_map(|view| view.deferred);
        let watched = watched.filter(|(_, hit)| breaks.watches(hit, beside)).map(|(index, _)| index);
        if let Some(index) = watched.chain(self.passed.take()).min() {
            self.leave(Next::Again(index));
        }
    }

    /// Whether the debugger has sent an interrupt.
    fn is_interrupted(&mut self) -> bool {
        loop {
            let Some(GdbStubStateMachine::Running(mut stub)) = self.stub.take() else { return false };
            match stub.borrow_conn().poll(&is_valid) {
                Ok(None) => {
                    self.stub = Some(stub.into());
                    return false;
                }
                Err(error) => {
                    self.lost(&error);
                    return false;
                }
                Ok(Some(byte)) => match stub.incoming_data(&mut self.machine, byte) {
                    Ok(GdbStubStateMachine::CtrlCInterrupt(stub)) => {
                        let running = stub.interrupt_handled(&mut self.machine, None::<Reason>);
                        self.stub = running.map_err(|error| self.lost(&error)).ok();
                        return self.stub.is_some();
                    }
                    Ok(GdbStubStateMachine::Disconnected(stub)) => {
                        self.disconnected(stub.get_reason());
                        return false;
                    }
                    Ok(stub) => self.stub = Some(stub),
                    Err(error) => {
                        self.lost(&error);
                        return false;
                    }
                },
            }
        }
    }

    /// Stops before an instruction until the debugger lets it go on.
    fn stop_at(&mut self, index: u64, at: &mut Step<'_, '_>, reason: Reason) {
        let place = (at.core, index, at.time);
        self.machine.load(place, at.image, at.context, at.space, None);
        self.serve(reason);
        if let Some(edit) = self.machine.take_edit() {
            // A change of the past makes another future.
            self.edits.split_off(&(index + 1));
            edit.apply(at.context, at.space, at.outer);
            let known = self.edits.entry(index).or_default();
            known.registers = edit.registers.or(known.registers.take());
            known.writes.extend(edit.writes);
        }
    }

    /// The instruction at the pc of a core traps.
    pub(crate) fn traps(&mut self, at: &mut Step<'_, '_>, trap: &Trap) {
        if !matches!(self.mode, Mode::Live) || self.stub.is_none() {
            return;
        }
        let signal = match trap.kind {
            TrapKind::IllegalInstruction { .. } => Signal::SIGILL,
            TrapKind::Breakpoint => Signal::SIGTRAP,
            TrapKind::Misaligned { .. } => Signal::SIGBUS,
            TrapKind::CycleLimit { .. } => Signal::SIGXCPU,
            _ => Signal::SIGSEGV,
        };
        // The trapping instruction is the last one.
        let index = self.index.saturating_sub(1);
        if self.machine.alone().is_some_and(|alone| alone != at.core) {
            self.passed.get_or_insert(index);
            return;
        }
        let place = (at.core, index, at.time);
        self.machine.load(place, at.image, at.context, at.space, Some(trap.to_string()));
        self.serve(Reason::SignalWithThread { tid: tid(at.core), signal });
    }

    /// Reports a stop, and serves the debugger until the cores go on.
    fn serve(&mut self, reason: Reason) {
        self.stops += 1;
        let stub = match (self.stub.take(), self.wire.take()) {
            (Some(GdbStubStateMachine::Running(stub)), _) => stub.report_stop(&mut self.machine, reason),
            (_, Some(wire)) => match GdbStub::builder(wire).packet_buffer_size(PACKET_BYTES).build() {
                Ok(stub) => stub.run_state_machine(&mut self.machine),
                Err(error) => return self.lost(&error),
            },
            (_, None) => return,
        };
        match stub {
            Ok(stub) => self.answer(stub),
            Err(error) => self.lost(&error),
        }
    }

    /// Answers the debugger until the cores go on.
    fn answer(&mut self, mut stub: Stub) {
        loop {
            let next = match stub {
                GdbStubStateMachine::Idle(mut idle) => {
                    match idle.borrow_conn().read(&self.interrupted, &is_valid) {
                        Ok(Some(byte)) => idle.incoming_data(&mut self.machine, byte),
                        Ok(None) => {
                            self.end = End::Interrupted;
                            return self.leave(Next::Nothing);
                        }
                        Err(error) => return self.lost(&error),
                    }
                }
                GdbStubStateMachine::Running(running) => match self.goes_back() {
                    Err(begin) => running.report_stop(&mut self.machine, begin),
                    Ok(()) => {
                        self.stub = Some(running.into());
                        return;
                    }
                },
                GdbStubStateMachine::CtrlCInterrupt(stub) => {
                    stub.interrupt_handled(&mut self.machine, Some(Reason::Signal(Signal::SIGINT)))
                }
                GdbStubStateMachine::Disconnected(stub) => return self.disconnected(stub.get_reason()),
            };
            stub = match next {
                Ok(stub) => stub,
                Err(error) => return self.lost(&error),
            };
        }
    }

    /// Begins a way back, if the debugger wants one.
    ///
    /// # Errors
    /// The stop at the beginning of the run, if there is nothing before.
    fn goes_back(&mut self) -> Result<(), Reason> {
        let current = self.machine.current;
        let begin = Reason::ReplayLog { tid: Some(tid(current)), pos: ReplayLogPosition::Begin };
        let passed = if self.machine.alone().is_none() { self.take_passed() } else { None };
        match self.machine.resume {
            Resume::Continue | Resume::Step { .. } => {
                if let Some(index) = passed {
                    self.leave(Next::Again(index));
                }
                Ok(())
            }
            Resume::StepBack { core } => {
                let view = self.machine.cores.get(&core);
                let index = view.and_then(|view| if core == current { view.before } else { view.last });
                let index = index.ok_or(begin)?;
                self.leave(Next::To(
                    index,
                    Reason::SignalWithThread { tid: tid(core), signal: Signal::SIGTRAP },
                ));
                Ok(())
            }
            Resume::ContinueBack => {
                let index = self.machine.cores.get(&current).and_then(|view| view.last);
                let index = index.filter(|index| *index > 0).ok_or(begin)?;
                self.leave(Next::Search(index));
                Ok(())
            }
        }
    }

    /// Abandons the run.
    fn leave(&mut self, next: Next) {
        self.mode = Mode::Leaving(next);
        self.stop.store(true, Ordering::Relaxed);
    }

    fn disconnected(&mut self, reason: DisconnectReason) {
        match reason {
            DisconnectReason::Kill => {
                self.end = End::Killed;
                self.leave(Next::Nothing);
            }
            _ => self.mode = Mode::Free,
        }
    }

    /// Continues without a debugger.
    fn lost(&mut self, error: &dyn std::fmt::Display) {
        self.end = End::Lost(error.to_string());
        self.mode = Mode::Free;
    }
}

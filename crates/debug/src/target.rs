//! The answers to GDB's packets: gdbstub's traits for the stopped cores. A thread of GDB is a core, or a context of a
//! microengine, numbered from 1.

use crate::arch::{Registers, RiscV};
use crate::breaks::Watchpoint;
use crate::machine::{Machine, Resume};
use crate::monitor::{Command, HELP};
use crate::packets::PACKET_BYTES;
use gdbstub::common::{Signal, Tid};
use gdbstub::conn::Connection;
use gdbstub::outputln;
use gdbstub::stub::GdbStub;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadRangeStepping, MultiThreadRangeSteppingOps, MultiThreadResume,
    MultiThreadResumeOps, MultiThreadSchedulerLocking, MultiThreadSchedulerLockingOps, MultiThreadSingleStep,
    MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::reverse_exec::{ReverseCont, ReverseContOps, ReverseStep, ReverseStepOps};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps};
use gdbstub::target::ext::target_description_xml_override::{
    TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps,
};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use std::convert::Infallible;

/// The number of "bad address" in GDB's protocol.
const EFAULT: u8 = 14;

/// The number of "operation not permitted".
const EPERM: u8 = 1;

/// Returns the thread of a core.
pub(crate) fn tid(core: usize) -> Tid {
    Tid::new(core + 1).expect("one more than a core's number")
}

fn core_of(tid: Tid) -> usize {
    tid.get() - 1
}

/// A connection without a debugger.
struct Nowhere;

impl Connection for Nowhere {
    type Error = Infallible;

    fn write(&mut self, _: u8) -> Result<(), Infallible> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Whether a packet has a valid command. The stub ends the session at others, so that another one tries it on no cores.
pub(crate) fn is_valid(packet: &[u8]) -> bool {
    let machine = &mut Machine::default();
    let Ok(stub) = GdbStub::builder(Nowhere).packet_buffer_size(PACKET_BYTES).build() else { return false };
    let mut stub = stub.run_state_machine(machine);
    for &byte in packet {
        stub = match stub {
            Ok(GdbStubStateMachine::Idle(idle)) => idle.incoming_data(machine, byte),
            other => return other.is_ok(),
        };
    }
    stub.is_ok()
}

impl Target for Machine {
    type Arch = RiscV;
    type Error = Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, RiscV, Infallible> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }

    fn support_target_description_xml_override(
        &mut self,
    ) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Machine {
    fn read_registers(&mut self, registers: &mut Registers, tid: Tid) -> TargetResult<(), Self> {
        *registers = Machine::registers(self, core_of(tid)).ok_or(TargetError::Errno(EFAULT))?;
        Ok(())
    }

    fn write_registers(&mut self, registers: &Registers, tid: Tid) -> TargetResult<(), Self> {
        match self.set_registers(core_of(tid), registers) {
            true => Ok(()),
            false => Err(TargetError::Errno(EPERM)),
        }
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        match self.read(core_of(tid), start, data) {
            0 if !data.is_empty() => Err(TargetError::Errno(EFAULT)),
            len => Ok(len),
        }
    }

    fn write_addrs(&mut self, start: u64, data: &[u8], tid: Tid) -> TargetResult<(), Self> {
        match data.is_empty() || self.write(core_of(tid), start, data) {
            true => Ok(()),
            false => Err(TargetError::Errno(EFAULT)),
        }
    }

    /// Lists the core that stopped first: GDB selects that one.
    fn list_active_threads(&mut self, active: &mut dyn FnMut(Tid)) -> Result<(), Infallible> {
        active(tid(self.current));
        let others = self.cores.iter().filter(|(core, view)| view.running && **core != self.current);
        others.for_each(|(core, _)| active(tid(*core)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl ThreadExtraInfo for Machine {
    fn thread_extra_info(&self, tid: Tid, buffer: &mut [u8]) -> Result<usize, Infallible> {
        let core = core_of(tid);
        let text = format!("{}: {}", self.place(core), self.about(core));
        let len = text.len().min(buffer.len());
        buffer[..len].copy_from_slice(&text.as_bytes()[..len]);
        Ok(len)
    }
}

impl MultiThreadResume for Machine {
    fn resume(&mut self) -> Result<(), Infallible> {
        if self.resume == Resume::Continue && self.alone().is_none() {
            self.breaks.settle();
        }
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Infallible> {
        self.resume = Resume::Continue;
        (self.locks, self.named) = (false, Vec::new());
        Ok(())
    }

    /// A core continues unless it steps.
    fn set_resume_action_continue(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Infallible> {
        self.named.push(core_of(tid));
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_range_step(&mut self) -> Option<MultiThreadRangeSteppingOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }

    fn support_reverse_step(&mut self) -> Option<ReverseStepOps<'_, Tid, Self>> {
        Some(self)
    }

    fn support_reverse_cont(&mut self) -> Option<ReverseContOps<'_, Tid, Self>> {
        Some(self)
    }
}

impl MultiThreadSchedulerLocking for Machine {
    /// GDB wants the other cores to stay where they are, for a step over a breakpoint. Time passes for all cores of a card,
    /// so they go on. Their stops are deferred, and are those of the breakpoints before the step
    /// ([`crate::breaks::Breaks`]).
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Infallible> {
        self.locks = true;
        Ok(())
    }
}

impl MultiThreadSingleStep for Machine {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Infallible> {
        self.named.push(core_of(tid));
        self.resume = Resume::Step { core: core_of(tid), range: None };
        Ok(())
    }
}

impl MultiThreadRangeStepping for Machine {
    fn set_resume_action_range_step(&mut self, tid: Tid, start: u64, end: u64) -> Result<(), Infallible> {
        self.named.push(core_of(tid));
        self.resume = Resume::Step { core: core_of(tid), range: Some((start, end)) };
        Ok(())
    }
}

impl ReverseStep<Tid> for Machine {
    fn reverse_step(&mut self, tid: Tid) -> Result<(), Infallible> {
        self.resume = Resume::StepBack { core: core_of(tid) };
        Ok(())
    }
}

impl ReverseCont<Tid> for Machine {
    fn reverse_cont(&mut self) -> Result<(), Infallible> {
        self.resume = Resume::ContinueBack;
        Ok(())
    }
}

impl Breakpoints for Machine {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Machine {
    fn add_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        self.breaks.add(address);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.breaks.remove(address))
    }
}

impl HwBreakpoint for Machine {
    fn add_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(address, kind)
    }

    fn remove_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(address, kind)
    }
}

impl HwWatchpoint for Machine {
    fn add_hw_watchpoint(&mut self, address: u64, len: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        self.breaks.watch(Watchpoint { address, len, kind });
        Ok(true)
    }

    fn remove_hw_watchpoint(&mut self, address: u64, len: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        Ok(self.breaks.unwatch(Watchpoint { address, len, kind }))
    }
}

impl MonitorCmd for Machine {
    fn handle_monitor_cmd(&mut self, text: &[u8], mut out: ConsoleOutput<'_>) -> Result<(), Infallible> {
        let answer = match Command::parse(text) {
            Err(error) => error.to_string(),
            Ok(Command::Help) => HELP.to_owned(),
            Ok(Command::Packet { bytes }) => self.packet(bytes),
            Ok(Command::Cores) => self.list_cores(),
            Ok(Command::Memory) => self.list_memory(),
            Ok(Command::Time) => self.tell_time(),
        };
        outputln!(out, "{}", answer.trim_end());
        Ok(())
    }
}

impl TargetDescriptionXmlOverride for Machine {
    fn target_description_xml(
        &self,
        annex: &[u8],
        offset: u64,
        length: usize,
        buffer: &mut [u8],
    ) -> TargetResult<usize, Self> {
        if annex != b"target.xml" {
            return Err(TargetError::NonFatal);
        }
        let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(self.description.len());
        let rest = &self.description.as_bytes()[offset..];
        let len = rest.len().min(length).min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

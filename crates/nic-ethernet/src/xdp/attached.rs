//! An attached program, and its run on a frame.

use super::events::Events;
use super::targets::{Target, targets};
use super::xsk::Xsk;
use nicety_ebpf::{Calls, HEADROOM, Machine, Packet, SHORTEST, Site};
use nicety_types::{Buffer, Time};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// The number of `XDP_DROP`, `XDP_PASS`, `XDP_TX` and `XDP_REDIRECT`.
const DROP: u32 = 1;
const PASS: u32 = 2;
const TX: u32 = 3;
const REDIRECT: u32 = nicety_ebpf::REDIRECT;

/// The place where a program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel's packet buffer.
    #[default]
    Native,
    /// Behind the packet buffer, which every driver has.
    Generic,
}

/// A program to attach.
#[derive(Clone)]
pub struct XdpProgram {
    /// Its name.
    pub name: String,
    /// Its machine. The values of per-CPU maps are those of the host's CPUs.
    pub machine: Rc<RefCell<Machine>>,
    /// Its number in the machine.
    pub program: usize,
    /// Whether it takes frames in several pieces.
    pub fragments: bool,
    /// The place where it runs.
    pub mode: Mode,
    pub(crate) events: Rc<Events>,
    /// Sockets of AF_XDP.
    pub(crate) sockets: Rc<RefCell<Vec<Rc<Xsk>>>>,
}

impl XdpProgram {
    /// A program of a machine, by its number there.
    pub fn new(
        name: &str,
        machine: Rc<RefCell<Machine>>,
        program: usize,
        (fragments, mode): (bool, Mode),
    ) -> XdpProgram {
        let (events, sockets) = Default::default();
        XdpProgram { name: name.to_owned(), machine, program, fragments, mode, events, sockets }
    }
}

impl fmt::Debug for XdpProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "XDP program {} ({:?})", self.name, self.mode)
    }
}

/// The place and time of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) queue: usize,
    pub(crate) cpu: usize,
    pub(crate) now: Time,
    /// The interface that a frame leaves by, for programs of device maps.
    pub(crate) leaves: u32,
}

/// The verdict on a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Drop,
    Transmit,
    Redirect(Vec<Target>),
    /// `XDP_ABORTED`, or a number that is no verdict.
    Aborted {
        /// The place of `XDP_ABORTED`; none for another number.
        at: Option<Site>,
    },
    Trapped(String),
}

/// The part of a buffer in front of its frame. Programs behind a redirect find it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Front {
    metadata: Vec<u8>,
    headroom: usize,
}

impl Default for Front {
    fn default() -> Front {
        Front { metadata: Vec::new(), headroom: HEADROOM }
    }
}

/// The end of a run.
pub(crate) struct Ran {
    pub(crate) verdict: Verdict,
    pub(crate) instructions: u64,
    pub(crate) calls: Calls,
    /// The frame afterwards; none if it goes nowhere.
    pub(crate) frame: Option<Buffer>,
    pub(crate) front: Front,
}

/// An attached program.
pub(crate) struct Attached {
    program: XdpProgram,
    /// The buffer of its packets.
    packet: RefCell<Packet>,
}

impl Attached {
    pub(crate) fn new(program: XdpProgram) -> Attached {
        let packet = Packet::new(&[0; SHORTEST], 0).expect("the smallest packet");
        Attached { program, packet: RefCell::new(packet) }
    }

    pub(crate) fn program(&self) -> &XdpProgram {
        &self.program
    }

    pub(crate) fn mode(&self) -> Mode {
        self.program.mode
    }

    /// Runs the program on a frame. Its effects on maps are immediate.
    pub(crate) fn run(&self, frame: &[u8], run: Run) -> Ran {
        self.run_second(self.program.program, (frame, &Front::default()), run)
    }

    /// Runs another program of its machine on a frame.
    pub(crate) fn run_second(&self, program: usize, (frame, front): (&[u8], &Front), run: Run) -> Ran {
        let (mut packet, mut machine) = (self.packet.borrow_mut(), self.program.machine.borrow_mut());
        let metadata = front.metadata.len();
        let filled = match metadata {
            0 => packet.restore(frame, 0, front.headroom),
            _ => packet.restore(&[&front.metadata, frame].concat(), metadata, front.headroom),
        };
        filled.expect("a frame with its header, no longer than the driver takes");
        (packet.interface, packet.queue, packet.leaves) = (1, run.queue as u32, run.leaves);
        (machine.cpu, machine.now_ns) = (run.cpu as u32, run.now.ps() / 1000);
        let mut outcome = match machine.run(program, &mut packet) {
            Ok(outcome) => outcome,
            Err(trap) => {
                let verdict = Verdict::Trapped(trap.to_string());
                let (calls, front) = Default::default();
                return Ran { verdict, instructions: 0, calls, frame: None, front };
            }
        };
        if !outcome.samples.is_empty() {
            self.program.events.keep(std::mem::take(&mut outcome.samples));
        }
        let after = match outcome.value {
            PASS => Verdict::Pass,
            DROP => Verdict::Drop,
            TX => Verdict::Transmit,
            REDIRECT => Verdict::Redirect(targets(&machine, outcome.redirect)),
            _ => Verdict::Aborted { at: outcome.aborted },
        };
        let goes = matches!(after, Verdict::Pass | Verdict::Transmit | Verdict::Redirect(_));
        let (mut frame, mut front) = (None, Front::default());
        if goes {
            let mut metadata = packet.bytes();
            frame = Some(Buffer::copy_of(&metadata.split_off(packet.metadata())));
            front = Front { metadata, headroom: packet.headroom() };
        }
        Ran { verdict: after, instructions: outcome.instructions, calls: outcome.calls, frame, front }
    }
}

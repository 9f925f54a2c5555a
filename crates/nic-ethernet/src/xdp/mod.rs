//! XDP programs in the host's driver: the attached program, its verdicts, and their counters.
//!
//! | file | contents |
//! |---|---|
//! | `attached.rs` | a program on a frame: its verdict, the changed bytes, the host's work |
//! | `counts.rs` | counters and their report |
//! | `events.rs`, `readers.rs` | records of ring buffers and of perf events, and their readers |
//! | `native.rs` | programs in the driver's poll, before the kernel's packet buffer |
//! | `generic.rs` | programs behind it |
//! | `queues.rs`, `serving.rs` | queues of CPUs, and their threads |
//! | `socket.rs`, `xsk.rs` | sockets of AF_XDP, which take frames to programs of the host, and their rings |
//! | `second.rs` | programs of entries of device maps and CPU maps |
//! | `targets.rs` | destinations: ports, other CPUs, sockets of programs |

mod attached;
mod counts;
mod events;
mod generic;
mod native;
mod queues;
mod readers;
mod second;
mod serving;
mod socket;
mod targets;
mod xsk;

pub use attached::{Mode, XdpProgram};
pub use counts::XdpReport;
pub(crate) use native::Batch;
pub(crate) use queues::CpuQueue;
pub use xsk::{XskOptions, XskReader};

use crate::spec::{EthernetSpec, HEADERS};
use attached::Attached;
use counts::Counts;
use nicety_ebpf::LINEAR;
use nicety_nic_core::{FailureKind, ProgramFailure};
use nicety_types::{Histogram, NodeId, Time};
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// Frames between two marks of the time.
pub const MARK: u64 = 16;
/// Kinds of failures that a host keeps.
const FAILURES_KEPT: usize = 64;

/// The reason why a program cannot be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XdpError {
    /// The card's spec has no costs of XDP.
    NoCosts,
    /// Frames may be longer than a program of one piece takes.
    TooLong {
        /// Bytes of the longest frame.
        frame: u64,
    },
    /// The machine has values for other CPUs than the host.
    Cpus {
        /// Those of the machine.
        machine: u32,
        /// Those of the host.
        host: usize,
    },
    /// A socket of AF_XDP cannot be bound, with the reason.
    Socket(String),
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XdpError::NoCosts => write!(
                f,
                "the card's spec has no costs of XDP; write the section [host.xdp], as ethernet-100g has it"
            ),
            XdpError::TooLong { frame } => write!(
                f,
                "frames of {frame} bytes do not fit the {LINEAR} bytes of one buffer; write a smaller \
                 frames.mtu, or SEC(\"xdp.frags\")"
            ),
            XdpError::Socket(problem) => f.write_str(problem),
            XdpError::Cpus { machine, host } => {
                write!(f, "maps with values for {machine} CPUs, but the host has {host}")
            }
        }
    }
}

impl std::error::Error for XdpError {}

/// A frame's arrival, for its latency and for the wire that it may leave by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    /// The arrival of its last byte at the card.
    pub(crate) at: Time,
    /// The station that sent it.
    pub(crate) source: NodeId,
    /// Whether its latency counts: that of one copy.
    pub(crate) counts: bool,
}

/// The course of frames through programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XdpProgress {
    /// Frames with a carried out verdict.
    pub through: u64,
    /// The arrival of the first of them at the card.
    pub first: Time,
    /// The arrival of the last.
    pub last: Time,
    /// The time of the last verdict.
    pub end: Time,
    /// The time of each [`MARK`]th verdict.
    pub marks: Vec<Time>,
}

impl XdpProgress {
    fn add(&mut self, came: Time, now: Time) {
        if self.through == 0 {
            self.first = came;
        }
        self.through += 1;
        (self.last, self.end) = (self.last.max(came), self.end.max(now));
        if self.through.is_multiple_of(MARK) {
            self.marks.push(now);
        }
    }
}

/// The program of a host's driver, and the counters of all that were attached.
#[derive(Default)]
pub struct Xdp {
    attached: RefCell<Option<Rc<Attached>>>,
    counts: RefCell<Counts>,
    /// Latencies of frames, in picoseconds.
    latency: RefCell<Histogram>,
    progress: RefCell<XdpProgress>,
    failures: RefCell<Vec<ProgramFailure>>,
}

impl Xdp {
    /// Attaches a program, or replaces the attached one.
    ///
    /// # Errors
    /// The host cannot run it.
    pub fn attach(&self, program: XdpProgram, spec: &EthernetSpec) -> Result<(), XdpError> {
        spec.xdp.ok_or(XdpError::NoCosts)?;
        let frame = spec.frames.mtu + HEADERS;
        if frame > LINEAR as u64 && !program.fragments {
            return Err(XdpError::TooLong { frame });
        }
        let machine = program.machine.borrow().cpus();
        if machine as usize != spec.cpus {
            return Err(XdpError::Cpus { machine, host: spec.cpus });
        }
        self.attached.replace(Some(Rc::new(Attached::new(program))));
        Ok(())
    }

    /// Detaches the program. Returns whether there was one.
    pub fn detach(&self) -> bool {
        self.attached.take().is_some()
    }

    /// Whether a program is attached.
    pub fn is_attached(&self) -> bool {
        self.attached.borrow().is_some()
    }

    pub(crate) fn attached(&self) -> Option<Rc<Attached>> {
        self.attached.borrow().clone()
    }

    /// The counters so far; none if no frame met a program.
    pub fn report(&self) -> Option<XdpReport> {
        let counts = self.counts.borrow();
        (*counts != Counts::default()).then(|| counts.clone())
    }

    /// Time from a frame's last byte at the card until its verdict is carried out, in picoseconds. Then the frame is
    /// dropped, on the wire, or with the protocols or a queue.
    pub fn latency(&self) -> Histogram {
        self.latency.borrow().clone()
    }

    /// The course of frames through programs so far.
    pub fn progress(&self) -> XdpProgress {
        self.progress.borrow().clone()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.borrow_mut());
    }

    /// Records that a frame's verdict is carried out. It is not for a frame that finds a queue or a ring full.
    pub(crate) fn done(&self, came: Came, now: Time) {
        if !came.counts {
            return;
        }
        self.latency.borrow_mut().add(now.saturating_since(came.at).ps());
        self.progress.borrow_mut().add(came.at, now);
    }

    fn fail(&self, node: NodeId, now: Time, text: String) {
        let mut failures = self.failures.borrow_mut();
        let known = failures.iter().any(|failure| failure.text == text);
        let text = match known || failures.len() < FAILURES_KEPT {
            true => text,
            false => "further programs of XDP trapped for other reasons".to_owned(),
        };
        match failures.iter_mut().find(|failure| failure.text == text) {
            Some(same) => same.times += 1,
            None => {
                let kind = FailureKind::Trap;
                failures.push(ProgramFailure { kind, time: now, node, hpu: None, text, times: 1 });
            }
        }
    }

    pub(crate) fn failures(&self) -> Vec<ProgramFailure> {
        self.failures.borrow().clone()
    }
}

//! The queue of a CPU for redirected frames.

use super::Came;
use super::attached::{Attached, Front};
use crate::net::softrings::Frame;
use nicety_host::threads::Thread;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// The program that runs on a frame behind a redirect, and the one that redirected it.
pub(super) type Second = (usize, Rc<Attached>);

/// A redirected frame.
pub(crate) struct Queued {
    pub(super) frame: Frame,
    pub(super) front: Front,
    /// Whether it is in a packet buffer already, behind a generic program.
    pub(super) buffered: bool,
    pub(super) came: Came,
    /// The receive queue that it came by.
    pub(super) number: usize,
    pub(super) second: Option<Second>,
}

/// The queue of a CPU, and the kernel's thread that takes its frames to the protocols.
pub(crate) struct CpuQueue {
    pub(super) thread: Thread,
    /// The CPU.
    pub(super) cpu: usize,
    pub(super) frames: RefCell<VecDeque<Queued>>,
}

impl CpuQueue {
    pub(super) fn new(thread: Thread, cpu: usize) -> CpuQueue {
        CpuQueue { thread, cpu, frames: RefCell::default() }
    }
}

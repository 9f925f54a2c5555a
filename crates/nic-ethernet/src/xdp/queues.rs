//! The queue of a CPU for redirected frames.

use super::Came;
use crate::net::softrings::Frame;
use nicety_host::threads::Thread;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The queue of a CPU, and the kernel's thread that takes its frames to the protocols.
pub(crate) struct CpuQueue {
    pub(super) thread: Thread,
    pub(super) frames: RefCell<VecDeque<(Frame, Came)>>,
}

impl CpuQueue {
    pub(super) fn new(thread: Thread) -> CpuQueue {
        CpuQueue { thread, frames: RefCell::default() }
    }
}

//! Lanes: channels for bulk data. A message occupies a lane during the transfer of its bytes.

use nicety_channels::Channel;
use nicety_kernel::{Permit, Pool, Sim};
use std::cell::RefCell;
use std::rc::Rc;

/// Maximum size of a chunk in bytes. It is equal to that in `forward.c`.
pub(super) const CHUNK: u32 = 65_536;
/// Size in bytes of the direct message with which the host ends a message after the failure of a chunk.
pub(super) const OVER: u32 = 4;

/// Returns the offset and size of each chunk of a message.
pub(super) fn chunks(bytes: u32) -> impl Iterator<Item = (u64, u32)> {
    (0..bytes).step_by(CHUNK as usize).map(move |at| (u64::from(at), CHUNK.min(bytes - at)))
}

/// A pool of lanes.
pub(super) struct Lanes {
    channels: Vec<Channel>,
    free: RefCell<Vec<usize>>,
    pool: Pool,
}

/// A lane that a message occupies. It becomes free when this value is dropped.
pub(super) struct Lane {
    lanes: Rc<Lanes>,
    number: usize,
    _permit: Permit,
}

impl Lanes {
    pub(super) fn new(sim: &Sim, channels: Vec<Channel>) -> Rc<Lanes> {
        let free = RefCell::new((0..channels.len()).rev().collect());
        Rc::new(Lanes { pool: Pool::new(sim, channels.len()), channels, free })
    }

    /// Waits for a free lane.
    pub(super) async fn take(self: &Rc<Lanes>) -> Lane {
        let permit = self.pool.acquire().await;
        let number = self.free.borrow_mut().pop().expect("the pool has as many permits as there are lanes");
        Lane { lanes: self.clone(), number, _permit: permit }
    }
}

impl Lane {
    pub(super) fn number(&self) -> u32 {
        self.number as u32
    }

    pub(super) fn channel(&self) -> Channel {
        self.lanes.channels[self.number]
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // The lane's number must be free before its permit is released. The permit is released when the fields are
        // dropped.
        self.lanes.free.borrow_mut().push(self.number);
    }
}

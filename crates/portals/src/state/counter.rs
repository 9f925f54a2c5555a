//! Counting events, and the triggered operations that wait on them.

use crate::diagnosis::FailedOperation;
use crate::handle::Slab;
use crate::{CtEvent, CtHandle, OperationHandle};
use std::collections::VecDeque;

/// An operation that waits on a counter.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    Start(OperationHandle),
    Inc(CtHandle, CtEvent),
    Set(CtHandle, CtEvent),
}

#[derive(Default)]
pub(crate) struct Ct {
    pub value: CtEvent,
    /// The first failed operation that the counter has counted.
    pub first_failure: Option<FailedOperation>,
    /// Number of match entries and descriptors that count into the counter, and of triggered operations that change it.
    pub users: u32,
    /// Thresholds and operations. They are sorted by threshold, and with equal thresholds by the order of posting.
    pub waiting: VecDeque<(u64, Action)>,
}

pub(crate) type Counters = Slab<CtHandle, Ct>;

impl Counters {
    /// Adds a user of the counter.
    pub fn r#use(&mut self, ct: Option<CtHandle>) {
        if let Some(ct) = ct {
            self.get_mut(ct).expect("the caller has looked at the counter").users += 1;
        }
    }

    /// Removes a user of the counter.
    pub fn unuse(&mut self, ct: Option<CtHandle>) {
        if let Some(ct) = ct {
            self.get_mut(ct).expect("a counter in use is not freed").users -= 1;
        }
    }
}

//! Numbers of the transfers of a cluster's DMA engine: from 1 up, in the order of their starts and ends.

use nicety_types::Time;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// The numbers of one engine.
#[derive(Default)]
pub struct TransferNumbers {
    started: Cell<u32>,
    /// End times of the transfers that had not ended at the last look.
    ends: RefCell<VecDeque<Time>>,
}

impl TransferNumbers {
    /// Starts a transfer that ends at `end`, no earlier than those already started. Returns its number.
    pub fn start(&self, now: Time, end: Time) -> u32 {
        self.forget(now);
        self.ends.borrow_mut().push_back(end);
        let number = self.next();
        self.started.set(number);
        number
    }

    /// Returns the number of the next transfer.
    pub fn next(&self) -> u32 {
        self.started.get().wrapping_add(1)
    }

    /// Returns the number of the last completed transfer. 0 for none.
    pub fn done(&self, now: Time) -> u32 {
        self.forget(now);
        self.started.get().wrapping_sub(self.ends.borrow().len() as u32)
    }

    /// Returns whether a transfer is in progress.
    pub fn busy(&self, now: Time) -> bool {
        self.forget(now);
        !self.ends.borrow().is_empty()
    }

    fn forget(&self, now: Time) {
        let mut ends = self.ends.borrow_mut();
        while ends.front().is_some_and(|end| *end <= now) {
            ends.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_end_in_the_order_of_their_numbers() {
        let (numbers, at) = (TransferNumbers::default(), |ns: u64| Time::from_ps(1000 * ns));
        assert_eq!((numbers.done(at(0)), numbers.next(), numbers.busy(at(0))), (0, 1, false));
        assert_eq!(numbers.start(at(0), at(20)), 1);
        assert_eq!(numbers.start(at(5), at(30)), 2);
        assert_eq!((numbers.done(at(19)), numbers.busy(at(19))), (0, true));
        assert_eq!((numbers.done(at(20)), numbers.next()), (1, 3));
        assert_eq!((numbers.done(at(30)), numbers.busy(at(30))), (2, false));
        assert_eq!(numbers.start(at(40), at(41)), 3);
        assert_eq!(numbers.done(at(41)), 3);
    }
}

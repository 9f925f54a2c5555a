//! Operations with descriptors that are still in the transmit ring. The card compares a refusal with these operations.
//! The refusal's event takes those fields from the operation that the packet of the refusal does not carry.
//!
//! The ring is circular. An operation is known until its last descriptor is overwritten, one full ring of descriptors
//! later.

use crate::wire::{Kind, Repr};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// An operation with descriptors in the ring.
struct Posted {
    /// Header of the operation's first descriptor.
    header: Repr,
    /// First address of the bytes on this host.
    local: u64,
    /// Number of descriptors written to the ring, up to and including the last descriptor of this operation.
    written: u64,
    refused: bool,
}

/// The operations with descriptors in a ring.
pub(crate) struct Known {
    entries: u64,
    /// The operations in the order of writing.
    posted: RefCell<VecDeque<Posted>>,
    /// Number of descriptors written so far.
    written: Cell<u64>,
    /// The highest number of all forgotten operations.
    forgotten: Cell<Option<u64>>,
}

impl Known {
    /// Returns an empty record for a ring with this number of entries.
    pub(crate) const fn new(entries: u64) -> Known {
        let posted = RefCell::new(VecDeque::new());
        Known { entries, posted, written: Cell::new(0), forgotten: Cell::new(None) }
    }

    /// Records an operation before its first descriptor is written.
    pub(crate) fn begin(&self, header: Repr, local: u64) {
        let written = self.written.get();
        self.posted.borrow_mut().push_back(Posted { header, local, written, refused: false });
    }

    /// Records a descriptor of the operation that was begun last.
    pub(crate) fn written(&self) {
        let (mut posted, written) = (self.posted.borrow_mut(), self.written.get() + 1);
        self.written.set(written);
        if let Some(last) = posted.back_mut() {
            last.written = written;
        }
        while let Some(first) = posted.front()
            && first.written + self.entries <= written
        {
            self.forgotten.set(self.forgotten.get().max(Some(first.header.number)));
            posted.pop_front();
        }
    }

    /// Returns the address and the data of the put or send that a packet refuses. Returns zeros if the operation is
    /// forgotten. Returns `None` if there is no such operation, or it was refused before.
    pub(crate) fn refused(&self, refusal: &Repr) -> Option<(u64, u64)> {
        let mut posted = self.posted.borrow_mut();
        let Some(own) = posted.iter_mut().find(|posted| posted.header.number == refusal.number) else {
            return (Some(refusal.number) <= self.forgotten.get()).then_some((0, 0));
        };
        let Repr { kind, from, to, bytes, data, .. } = own.header;
        let its = kind == Kind::Put && (to, from, bytes) == (refusal.from, refusal.to, refusal.bytes);
        (its && !std::mem::replace(&mut own.refused, true)).then_some((own.local, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;
    use crate::error::Refusal;
    use nicety_types::NodeId;

    fn operation(kind: Kind, number: u64) -> Repr {
        let end = |node| Endpoint { node: NodeId(node), process: 3 };
        let (from, to, address, data) = (end(0), end(1), 64, number + 1);
        let (physical, payload, offset, bytes, sequence) = (false, 0, 0, 8, 0);
        Repr { kind, physical, from, to, payload, address, number, offset, bytes, data, sequence }
    }

    fn refusal(number: u64) -> Repr {
        operation(Kind::Put, number).refusal(Refusal::Foreign)
    }

    #[test]
    fn a_refusal_is_that_of_a_put_to_its_sender_and_comes_once() {
        let known = Known::new(8);
        for (kind, number) in [(Kind::Put, 5), (Kind::Get, 6)] {
            known.begin(operation(kind, number), 100 * number);
            known.written();
        }
        let right = refusal(5);
        let end = |node, process| Endpoint { node: NodeId(node), process };
        for wrong in [
            Repr { from: end(2, 3), ..right },
            Repr { from: end(1, 4), ..right },
            Repr { to: end(0, 4), ..right },
            Repr { bytes: 9, ..right },
            // Operation 6 is a get, so the refusal of a put does not match it. No operation has the number 4 or 7.
            refusal(6),
            refusal(4),
            refusal(7),
        ] {
            assert_eq!(known.refused(&wrong), None, "{wrong:?}");
        }
        assert_eq!([known.refused(&right), known.refused(&right)], [Some((500, 6)), None]);
    }

    #[test]
    fn an_operation_is_known_until_its_last_descriptor_is_written_over() {
        let known = Known::new(3);
        for (number, descriptors) in [(4, 2), (2, 1), (9, 2)] {
            known.begin(operation(Kind::Put, number), 100 * number);
            (0..descriptors).for_each(|_| known.written());
        }
        // The fifth descriptor overwrites the second, so the first operation is forgotten.
        let found = [4, 2, 9].map(|number| known.refused(&refusal(number)));
        assert_eq!(found, [Some((0, 0)), Some((200, 3)), Some((900, 10))]);
        // A forgotten operation can have any number up to the highest forgotten number.
        assert_eq!([3, 5].map(|number| known.refused(&refusal(number))), [Some((0, 0)), None]);
        // An operation with more descriptors than the ring has entries is known.
        known.begin(operation(Kind::Put, 10), 1000);
        (0..7).for_each(|_| known.written());
        assert_eq!(known.refused(&refusal(10)), Some((1000, 11)));
    }
}

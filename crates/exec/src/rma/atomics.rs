//! Atomic operations, with libfabric's numbers as in `shim/atomics.c`.

use crate::protocol::Operation;
use nicety::portals::{Atomic, AtomicOp, Datatype};

/// The operators FI_ATOMIC_READ and FI_ATOMIC_WRITE.
const READ: u8 = 10;
const WRITE: u8 = 11;

/// The Portals call for an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicForm {
    /// `PtlAtomic`.
    Combines(Atomic),
    /// `PtlFetchAtomic`.
    Fetches(Atomic),
    /// `PtlSwap`.
    Swaps(Atomic),
    /// `PtlSwap`, with a result that is ignored.
    Writes(Atomic),
    /// `PtlFetchAtomic`: a bitwise or with zeros, for every type. A get would not do, since it could overtake operations in
    /// flight.
    Reads(Atomic),
}

impl AtomicForm {
    /// Returns the Portals call for an operation; `None` if Portals has no such operation.
    pub(super) fn of(operation: &Operation) -> Option<AtomicForm> {
        let datatype = *Datatype::ALL.get(usize::from(operation.datatype))?;
        let atomic = |op: AtomicOp| Atomic::new(op, datatype).ok();
        match (operation.kind, operation.op) {
            (0, WRITE) => atomic(AtomicOp::Swap).map(AtomicForm::Writes),
            (1, WRITE) => atomic(AtomicOp::Swap).map(AtomicForm::Swaps),
            (1, READ) => Atomic::new(AtomicOp::Bor, Datatype::Uint8).ok().map(AtomicForm::Reads),
            (0, op @ ..=9) => atomic(AtomicOp::ALL[usize::from(op)]).map(AtomicForm::Combines),
            (1, op @ ..=9) => atomic(AtomicOp::ALL[usize::from(op)]).map(AtomicForm::Fetches),
            // The numbers of conditional and masked swaps are those of Portals plus one.
            (2, op @ 12..) => {
                let op = *AtomicOp::ALL.get(usize::from(op) - 1)?;
                atomic(op).filter(|_| op.has_operand()).map(AtomicForm::Swaps)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: u8, datatype: u8, op: u8) -> Option<AtomicForm> {
        AtomicForm::of(&Operation { kind, datatype, op, result: 0, compared: 0 })
    }

    #[test]
    fn numbers_are_libfabrics() {
        let atomic = |op, datatype| Atomic::new(op, datatype).unwrap();
        assert_eq!(of(0, 9, 2), Some(AtomicForm::Combines(atomic(AtomicOp::Sum, Datatype::Double))));
        assert_eq!(of(1, 5, 9), Some(AtomicForm::Fetches(atomic(AtomicOp::Bxor, Datatype::Uint32))));
        assert_eq!(of(0, 6, 11), Some(AtomicForm::Writes(atomic(AtomicOp::Swap, Datatype::Int64))));
        assert_eq!(of(1, 11, 11), Some(AtomicForm::Swaps(atomic(AtomicOp::Swap, Datatype::DoubleComplex))));
        assert_eq!(of(1, 8, 10), Some(AtomicForm::Reads(atomic(AtomicOp::Bor, Datatype::Uint8))));
        assert_eq!(of(2, 7, 12), Some(AtomicForm::Swaps(atomic(AtomicOp::Cswap, Datatype::Uint64))));
        assert_eq!(of(2, 4, 15), Some(AtomicForm::Swaps(atomic(AtomicOp::CswapLt, Datatype::Int32))));
        assert_eq!(of(2, 4, 18), Some(AtomicForm::Swaps(atomic(AtomicOp::Mswap, Datatype::Int32))));
    }

    #[test]
    fn missing_atomics_are_none() {
        // Invalid: a read without a result, a swap as a sum, a long double, logic on a floating-point number, a comparison by a
        // sum.
        for (kind, datatype, op) in
            [(0, 4, 10), (0, 4, 12), (1, 4, 18), (0, 12, 2), (0, 9, 4), (2, 4, 2), (2, 4, 19), (3, 4, 2)]
        {
            assert_eq!(of(kind, datatype, op), None, "{kind} {datatype} {op}");
        }
    }
}

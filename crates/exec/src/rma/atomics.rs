//! Atomic operations by libfabric's numbers, as `shim/atomics.c` passes them on.

use crate::protocol::Operation;
use nicety::portals::{Atomic, AtomicOp, Datatype};

/// FI_ATOMIC_READ and FI_ATOMIC_WRITE.
const READ: u8 = 10;
const WRITE: u8 = 11;

/// The form of an atomic operation on a card with Portals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// `PtlAtomic`.
    Combines(Atomic),
    /// `PtlFetchAtomic`.
    Fetches(Atomic),
    /// `PtlSwap`.
    Swaps(Atomic),
    /// A swap without a result.
    Writes(Atomic),
    /// Bitwise or with zeros, for any type: a get could overtake operations in flight.
    Reads(Atomic),
}

impl Does {
    /// Returns the operation of these numbers, if there is one.
    pub(super) fn of(operation: &Operation) -> Option<Does> {
        let datatype = *Datatype::ALL.get(usize::from(operation.datatype))?;
        let atomic = |op: AtomicOp| Atomic::new(op, datatype).ok();
        match (operation.kind, operation.op) {
            (0, WRITE) => atomic(AtomicOp::Swap).map(Does::Writes),
            (1, WRITE) => atomic(AtomicOp::Swap).map(Does::Swaps),
            (1, READ) => Atomic::new(AtomicOp::Bor, Datatype::Uint8).ok().map(Does::Reads),
            (0, op @ ..=9) => atomic(AtomicOp::ALL[usize::from(op)]).map(Does::Combines),
            (1, op @ ..=9) => atomic(AtomicOp::ALL[usize::from(op)]).map(Does::Fetches),
            // Conditional and masked swaps are one number behind those of Portals.
            (2, op @ 12..) => {
                let op = *AtomicOp::ALL.get(usize::from(op) - 1)?;
                atomic(op).filter(|_| op.has_operand()).map(Does::Swaps)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: u8, datatype: u8, op: u8) -> Option<Does> {
        Does::of(&Operation { kind, datatype, op, result: 0, compared: 0 })
    }

    #[test]
    fn numbers_are_libfabrics() {
        let atomic = |op, datatype| Atomic::new(op, datatype).unwrap();
        assert_eq!(of(0, 9, 2), Some(Does::Combines(atomic(AtomicOp::Sum, Datatype::Double))));
        assert_eq!(of(1, 5, 9), Some(Does::Fetches(atomic(AtomicOp::Bxor, Datatype::Uint32))));
        assert_eq!(of(0, 6, 11), Some(Does::Writes(atomic(AtomicOp::Swap, Datatype::Int64))));
        assert_eq!(of(1, 11, 11), Some(Does::Swaps(atomic(AtomicOp::Swap, Datatype::DoubleComplex))));
        assert_eq!(of(1, 8, 10), Some(Does::Reads(atomic(AtomicOp::Bor, Datatype::Uint8))));
        assert_eq!(of(2, 7, 12), Some(Does::Swaps(atomic(AtomicOp::Cswap, Datatype::Uint64))));
        assert_eq!(of(2, 4, 15), Some(Does::Swaps(atomic(AtomicOp::CswapLt, Datatype::Int32))));
        assert_eq!(of(2, 4, 18), Some(Does::Swaps(atomic(AtomicOp::Mswap, Datatype::Int32))));
    }

    #[test]
    fn what_there_is_not_is_none() {
        // A read without a result, a swap as a sum, a long double, logical operators on fractions, a comparison by a sum.
        for (kind, datatype, op) in
            [(0, 4, 10), (0, 4, 12), (1, 4, 18), (0, 12, 2), (0, 9, 4), (2, 4, 2), (2, 4, 19), (3, 4, 2)]
        {
            assert_eq!(of(kind, datatype, op), None, "{kind} {datatype} {op}");
        }
    }
}

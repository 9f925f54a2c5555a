//! Handles of a process. A handle has the kind of object, and the card's number of the object.

use super::codes::{CT_NONE, EQ_NONE, Stop};
use nicety::HpuMemoryId;
use nicety::portals::{CtHandle, EqHandle, MdHandle, MeHandle};

/// The position of the kind in a handle. Kind 1 is the interface; `shim/portals.h` has this kind.
const SHIFT: u32 = 60;

/// A type of object on the card for which a process can have handles.
pub(crate) trait Object: Copy {
    const KIND: u64;
    const NAME: &'static str;
    fn bits(self) -> u64;
    fn of_bits(bits: u64) -> Self;

    fn handle(self) -> u64 {
        debug_assert!(self.bits() >> SHIFT == 0, "a number that leaves room for the kind");
        Self::KIND << SHIFT | self.bits()
    }

    fn of(handle: u64) -> Result<Self, Stop> {
        match handle >> SHIFT == Self::KIND {
            true => Ok(Self::of_bits(handle & ((1 << SHIFT) - 1))),
            false => Err(Stop::invalid(&format!("{handle:#x} is not the handle of a {}", Self::NAME))),
        }
    }
}

/// The number of attached handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attached(pub(crate) u32);

macro_rules! objects {
    ($($type:ident = $kind:literal, $name:literal, $bits:expr, $of_bits:expr;)*) => {$(
        impl Object for $type {
            const KIND: u64 = $kind;
            const NAME: &'static str = $name;
            fn bits(self) -> u64 {
                $bits(self)
            }
            fn of_bits(bits: u64) -> Self {
                $of_bits(bits)
            }
        }
    )*};
}

objects! {
    MdHandle = 2, "memory descriptor", MdHandle::to_bits, MdHandle::from_bits;
    MeHandle = 3, "match entry", MeHandle::to_bits, MeHandle::from_bits;
    EqHandle = 4, "event queue", EqHandle::to_bits, EqHandle::from_bits;
    CtHandle = 5, "counter", CtHandle::to_bits, CtHandle::from_bits;
    HpuMemoryId = 6, "piece of HPU memory", |id: HpuMemoryId| id.0, HpuMemoryId;
    Attached = 7, "program of handlers", |own: Attached| own.0.into(), |bits| Attached(bits as u32);
}

pub(crate) fn counter(handle: u64) -> Result<Option<CtHandle>, Stop> {
    (handle != CT_NONE).then(|| CtHandle::of(handle)).transpose()
}

pub(crate) fn queue(handle: u64) -> Result<Option<EqHandle>, Stop> {
    (handle != EQ_NONE).then(|| EqHandle::of(handle)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_handle_is_of_one_kind(number in any::<u64>()) {
            // The handle of the interface has kind 1, and the handle that means none has kind 15.
            let kinds = [
                MdHandle::of(number).is_ok(), MeHandle::of(number).is_ok(), EqHandle::of(number).is_ok(),
                CtHandle::of(number).is_ok(), HpuMemoryId::of(number).is_ok(), Attached::of(number).is_ok(),
            ];
            let expected = usize::from((2..=7).contains(&(number >> SHIFT)));
            prop_assert_eq!(kinds.into_iter().filter(|is| *is).count(), expected);
        }

        #[test]
        fn handles_come_back(index in any::<u32>(), generation in 0_u64..1 << 28) {
            let ct = CtHandle::from_bits(generation << 32 | u64::from(index));
            prop_assert_eq!(CtHandle::of(ct.handle()).unwrap(), ct);
            prop_assert!(EqHandle::of(ct.handle()).is_err());
        }
    }

    #[test]
    fn none_is_no_object() {
        assert!(counter(CT_NONE).unwrap().is_none() && queue(EQ_NONE).unwrap().is_none());
        assert!(counter(EQ_NONE).is_err() && queue(0).is_err());
    }
}

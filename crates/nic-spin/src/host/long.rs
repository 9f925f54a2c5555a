//! Long messages at their sender: their numbers, and the header data with which the receivers find the messages' bytes.

use nicety_host::GPU_ADDRESSES;
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

/// Number of bits of an address in header data. The addresses of host memory are lower than those of graphics
/// processors.
const ADDRESS_BITS: u32 = GPU_ADDRESSES.trailing_zeros();
const _: () = assert!(GPU_ADDRESSES.is_power_of_two());

/// Maximum number of a host's long messages in flight: the number of values of the remaining bits of the header data.
pub(super) const LONG_MESSAGES: u64 = 1 << (u64::BITS - ADDRESS_BITS);

/// A long message at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LongMessage {
    /// The number that the receiver's get carries. With it, the sender knows which message the receiver got.
    pub(super) number: u64,
    pub(super) address: u64,
}

impl LongMessage {
    /// Returns the header data of the message's put.
    pub(super) fn header_data(self) -> u64 {
        debug_assert!(self.address < GPU_ADDRESSES, "host memory ends before");
        self.number << ADDRESS_BITS | self.address
    }

    /// Returns the message that a put with this header data announces.
    pub(super) const fn told_by(header_data: u64) -> LongMessage {
        LongMessage { number: header_data >> ADDRESS_BITS, address: header_data & (GPU_ADDRESSES - 1) }
    }
}

/// The numbers of a host's long messages. A number is reused as late as possible, and only after its message has ended.
#[derive(Default)]
pub(super) struct LongNumbers {
    next: Cell<u64>,
    /// Maps a number in use to the number of its send.
    requests: RefCell<FxHashMap<u64, u64>>,
}

impl LongNumbers {
    /// Takes a number for a send, if one is free.
    pub(super) fn take(&self, request: u64) -> Option<u64> {
        let mut requests = self.requests.borrow_mut();
        if requests.len() as u64 >= LONG_MESSAGES {
            return None;
        }
        let after = |number: u64| (number + 1) % LONG_MESSAGES;
        let mut number = self.next.get();
        while requests.contains_key(&number) {
            number = after(number);
        }
        self.next.set(after(number));
        requests.insert(number, request);
        Some(number)
    }

    /// Returns the send that uses a number, if there is one.
    pub(super) fn request(&self, number: u64) -> Option<u64> {
        self.requests.borrow().get(&number).copied()
    }

    /// Frees the number of a message that has ended.
    pub(super) fn free(&self, number: u64) {
        self.requests.borrow_mut().remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_an_address_share_the_header_data() {
        assert_eq!(LONG_MESSAGES, 262_144);
        for number in [0, 1, LONG_MESSAGES - 1] {
            for address in [0, 0x10_0000, (1 << 46) - 1] {
                let message = LongMessage { number, address };
                assert_eq!(LongMessage::told_by(message.header_data()), message);
            }
        }
        assert_eq!(LongMessage { number: 3, address: 0x10_0000 }.header_data(), 3 << 46 | 0x10_0000);
    }

    #[test]
    fn numbers_go_round_past_those_in_use_until_none_is_left() {
        let numbers = LongNumbers::default();
        assert_eq!([100, 101, 102].map(|request| numbers.take(request)), [Some(0), Some(1), Some(2)]);
        numbers.free(1);
        assert_eq!([0, 1, 2].map(|number| numbers.request(number)), [Some(100), None, Some(102)]);
        for number in 3..LONG_MESSAGES {
            assert_eq!(numbers.take(number), Some(number));
        }
        assert_eq!((numbers.take(7), numbers.take(8)), (Some(1), None));
        numbers.free(LONG_MESSAGES - 1);
        assert_eq!((numbers.take(9), numbers.take(10)), (Some(LONG_MESSAGES - 1), None));
    }
}

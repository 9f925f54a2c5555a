//! Long messages at their sender, between request to send (RTS) and clear to send (CTS).

use nicety_types::Path;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A long message at its sender.
#[derive(Debug)]
pub struct Announced<P> {
    /// The rank of the receiver.
    pub to: u32,
    /// The message's length in bytes.
    pub bytes: u64,
    /// The content of the message's CTS, and the path up to the arrival of the CTS.
    answer: Option<(P, Path)>,
}

impl<P> Announced<P> {
    /// Whether the message's CTS has arrived and no call has taken it.
    pub const fn is_answered(&self) -> bool {
        self.answer.is_some()
    }
}

/// The long messages that a host has announced and not sent yet, by message number.
#[derive(Debug)]
pub struct Announcements<P>(RefCell<BTreeMap<u64, Announced<P>>>);

impl<P> Default for Announcements<P> {
    fn default() -> Announcements<P> {
        Announcements(RefCell::default())
    }
}

impl<P> Announcements<P> {
    /// Announces a message to its receiver. The caller then sends the RTS.
    pub fn announce(&self, number: u64, to: u32, bytes: u64) {
        self.0.borrow_mut().insert(number, Announced { to, bytes, answer: None });
    }

    /// Stores a CTS from rank `from` for a message. Does so only if the message is announced to this rank, has no CTS
    /// yet, and `fits` returns true. Returns whether the CTS was stored.
    pub fn answer(
        &self,
        number: u64,
        from: u32,
        (place, path): (P, Path),
        fits: impl FnOnce(&Announced<P>, &P) -> bool,
    ) -> bool {
        match self.0.borrow_mut().get_mut(&number) {
            Some(announced)
                if announced.to == from && !announced.is_answered() && fits(announced, &place) =>
            {
                announced.answer = Some((place, path));
                true
            }
            _ => false,
        }
    }

    /// Whether a message with this number is announced.
    pub fn is_there(&self, number: u64) -> bool {
        self.0.borrow().contains_key(&number)
    }

    /// Whether the CTS of a message has arrived and no call has taken it.
    pub fn is_answered(&self, number: u64) -> bool {
        self.0.borrow().get(&number).is_some_and(Announced::is_answered)
    }

    /// Takes the CTS of a message. The message stays announced.
    pub fn take(&self, number: u64) -> Option<(P, Path)> {
        self.0.borrow_mut().get_mut(&number)?.answer.take()
    }

    /// Ends the announcement of a message.
    pub fn end(&self, number: u64) {
        self.0.borrow_mut().remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_types::Time;

    #[test]
    fn only_an_announced_message_has_an_allowed_answer_once() {
        let path = || Path::from(Time::ZERO);
        let all: Announcements<u64> = Announcements::default();
        let short = |announced: &Announced<u64>, &place: &u64| place <= announced.bytes;
        assert!(!all.answer(7, 2, (1, path()), short));
        all.announce(7, 2, 100);
        assert!(!all.answer(7, 3, (1, path()), short) && !all.is_answered(7) && all.take(7).is_none());
        assert!(!all.answer(7, 2, (101, path()), short));
        assert!(all.answer(7, 2, (1, path()), short) && all.is_answered(7));
        assert!(!all.answer(7, 2, (9, path()), short));
        assert_eq!(all.take(7).map(|(place, _)| place), Some(1));
        assert!(all.is_there(7) && !all.is_answered(7));
        all.end(7);
        assert!(!all.is_there(7) && !all.answer(7, 2, (1, path()), short));
    }
}

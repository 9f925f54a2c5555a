//! Deadlock hints: messages that no receive has taken.

use super::Messenger;

impl Messenger {
    /// Messages that no receive has taken, in the form of sentence objects.
    pub(crate) fn unreceived(&self) -> Vec<String> {
        let incoming = self.incoming.borrow();
        let held = incoming.iter().filter_map(|incoming| match incoming.state.borrow().message {
            Some((header, None, _)) if !self.has_room(header.bytes) => Some(format!(
                "a message of {} bytes from rank {}, tag {}, waits in its connection and blocks all later \
                 messages: no recv takes it, and messages.unexpected has no room for it",
                header.bytes, header.source, header.tag
            )),
            _ => None,
        });
        self.library.unreceived().into_iter().chain(held).collect()
    }
}

//! Deadlock hints: messages that no receive has taken.

use super::Messenger;
use nicety_nic_core::counted;

impl Messenger {
    /// Messages that no receive has taken, in the form of sentence objects.
    pub(crate) fn unreceived(&self) -> Vec<String> {
        let matching = self.matching.borrow();
        let first = matching.messages().next().map(|first| {
            let (count, header) = (matching.messages().len() as u64, first.header);
            let (how, verb) = if count == 1 { (":", "is") } else { (", the first", "are") };
            format!(
                "{} {verb} there that no recv has taken{how} one of {} bytes from rank {}, tag {}",
                counted(count, "message"),
                header.bytes,
                header.source,
                header.tag
            )
        });
        let incoming = self.incoming.borrow();
        let held = incoming.iter().filter_map(|incoming| match incoming.state.borrow().message {
            Some((header, None, _)) if !self.has_room(header.bytes) => Some(format!(
                "a message of {} bytes from rank {}, tag {}, waits in its connection, and all that came behind it: no \
                 recv takes it, and messages.unexpected has no room for it",
                header.bytes, header.source, header.tag
            )),
            _ => None,
        });
        first.into_iter().chain(held).collect()
    }
}

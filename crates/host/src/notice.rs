//! Notifications from a card to its host.

/// A notification from a card to its host, apart from payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An event in a queue.
    Event,
    /// A counter's new value.
    Counter,
}

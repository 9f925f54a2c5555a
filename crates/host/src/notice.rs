//! Notifications from a card to its host.

/// A kind of notification from a card to its host. Payload is separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An event in an event queue.
    Event,
    /// A counter's new value.
    Counter,
}

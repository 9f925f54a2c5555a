//! Receives in progress, and sends of a host to itself.

use crate::messenger::Messenger;
use crate::messenger::envelope::Envelope;
use crate::messenger::error::MessageError;
use nicety_nic_core::library;
use nicety_types::{MessageId, Path};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The outcome of a send to this host.
pub(super) type Sent = RefCell<Option<(Result<(), MessageError>, Path)>>;

/// A posted receive. Its message is written into its buffer even if no call waits for the receive.
#[derive(Clone)]
#[must_use = "a message comes into its buffer; Messenger::received says when"]
pub struct Posted(pub(super) Rc<Receiving>);

pub(super) type Receiving = library::Receiving<Messenger>;

/// The progress of a receive.
#[derive(Default)]
pub struct Progress {
    /// The matching envelope, with the path up to its arrival.
    pub(super) taken: RefCell<Option<(Envelope, Path)>>,
    /// The identifier of the received message, after the receive has ended.
    pub(super) message: Cell<Option<MessageId>>,
    /// Whether the receive was withdrawn. A withdrawn receive gets no message.
    pub(super) withdrawn: Cell<bool>,
    /// Whether the message was from this host, and the sender has copied it.
    pub(super) filled_by_sender: Cell<bool>,
}

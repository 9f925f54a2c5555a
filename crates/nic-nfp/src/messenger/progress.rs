//! Sends and receives in progress.

use crate::messenger::envelope::Envelope;
use crate::messenger::error::{Arrival, MessageError};
use nicety_nic_core::Wanted;
use nicety_types::{MessageId, Path};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The progress of a send, for deadlock hints.
#[derive(Default)]
pub(super) struct Sending {
    /// Whether the RTS was sent, and no CTS has arrived.
    pub(super) asked: Cell<bool>,
    pub(super) done: RefCell<Option<(Result<(), MessageError>, Path)>>,
}

/// A posted receive. Its message goes into its buffer even without a waiting call.
#[derive(Clone)]
#[must_use = "a message comes into its buffer; Messenger::received says when"]
pub struct Posted(pub(super) Rc<Receive>);

pub(super) struct Receive {
    pub(super) wanted: Wanted,
    /// The matched envelope, with the path up to its arrival.
    pub(super) taken: RefCell<Option<(Envelope, Path)>>,
    pub(super) done: RefCell<Option<Done>>,
    /// Whether it was withdrawn, so that no message arrives.
    pub(super) withdrawn: Cell<bool>,
    /// Whether its message was from this host, and the sender has copied it.
    pub(super) filled_by_sender: Cell<bool>,
}

/// The outcome of a receive: message, result and path.
pub(super) type Done = (MessageId, Result<Arrival, MessageError>, Path);

impl Receive {
    pub(super) fn new(wanted: Wanted) -> Receive {
        let (taken, done) = (RefCell::new(None), RefCell::new(None));
        Receive { wanted, taken, done, withdrawn: Cell::new(false), filled_by_sender: Cell::new(false) }
    }

    pub(super) fn takes(&self, envelope: &Envelope) -> bool {
        self.wanted.takes(envelope.rank, envelope.tag)
    }
}
